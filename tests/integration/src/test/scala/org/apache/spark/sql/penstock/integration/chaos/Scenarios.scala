package org.apache.spark.sql.penstock.integration.chaos

import java.util.SplittableRandom

import scala.util.Random

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.integration.cases.Matrix

import io.penstock.faults.{Fault, FaultyCheckpointFileManager}
import io.penstock.routing.{HybridPolicy, PublishedPolicy}

/** Random scenarios, one per seed. */
object Scenarios {
  private val LocalFiles = "io.penstock.LocalCheckpointFileManager"
  private val SparkFiles =
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"

  /** Files that the driver writes once per batch, in the order of a batch. */
  private val DriverWrites = Seq("offsets", "epochs", "manifests", "commits")
  private val TaskWrites = Seq("changelogs", "snapshots")
  private val Reads = Seq("manifests", "changelogs", "snapshots", "epochs", "offsets", "commits")

  def of(seed: Long): Scenario = {
    // For similar seeds the first numbers of java.util.Random are similar, so the seed is mixed first.
    val random = new Random(new SplittableRandom(seed).nextLong())
    val query = pick(random, Matrix.all)
    val cluster = random.nextInt(5) == 0
    val twice = !cluster && random.nextInt(6) == 0
    val inputs = 3 + random.nextInt(3)
    val actions = actionsOf(seed, cluster)
    val otherSettings = numbersOf(seed, salt = 7).nextBoolean()
    val steps = (0 until inputs).flatMap { number =>
      val rows = pick(random, Seq(0, 5, 60, 120))
      // A source in memory cannot give an application at its start the rows that only the other one was fed.
      val between = if (random.nextInt(3) == 0 && !twice) Seq("restart") else Nil
      s"feed ${number + random.nextInt(2) * inputs} $rows ${rows / 2 + 1}" +: between
    } :+ "idle"
    Scenario(
      seed,
      query.name,
      cluster,
      twice,
      shards = if (query.shards == 1) 1 else pick(random, Seq(4, 16, 32)),
      policy(seed),
      (settings(random) -- (if (otherSettings) StartSettings.keys else Nil)) ++ copies(seed, cluster),
      ordered(steps),
      (Seq.fill(2 + random.nextInt(4))(fault(random, cluster, inputs)) ++ ofSidecars(seed, inputs) ++
        orderlyEnds(seed, cluster, inputs, actions)).map(_.toString),
      actions,
      pauseMs = if (actions == 1) 0 else pick(numbersOf(seed, salt = 4), Seq(0, 10, 20, 40)),
      speculation = cluster && numbersOf(seed, salt = 5).nextInt(4) > 0,
      otherSettings = otherSettings
    )
  }

  /** The policy, with its own random numbers. Most scenarios have random places, which change in every batch. */
  private def policy(seed: Long): String = {
    val random = numbersOf(seed, salt = 0)
    if (random.nextInt(3) > 0) "" else pick(random, HybridPolicy +: PublishedPolicy.all).toString
  }

  /** Replicas of shards, with their own random numbers. */
  private def copies(seed: Long, cluster: Boolean): Map[String, String] =
    if (cluster && numbersOf(seed, salt = 1).nextBoolean()) Map("spark.penstock.replicas" -> "2") else Map.empty

  /** In half of the scenarios the sidecars of the driver or of an executor end. */
  private def ofSidecars(seed: Long, inputs: Int): Seq[Fault] = {
    val random = numbersOf(seed, salt = 2)
    if (random.nextBoolean()) Nil
    else Seq.fill(1 + random.nextInt(2)) {
      val batch = if (random.nextBoolean()) None else Some(random.nextInt(inputs + 1).toLong)
      if (random.nextInt(3) == 0) Fault(Fault.Create, pick(random, DriverWrites), batch, Fault.EndSidecars)
      else Fault(pick(random, Fault.OfTasks), "-", batch, Fault.EndSidecars)
    }
  }

  /**
   * Number of actions on each batch, with its own random numbers. Half of the scenarios have several, on a cluster
   * more.
   */
  private def actionsOf(seed: Long, cluster: Boolean): Int = {
    val random = numbersOf(seed, salt = 3)
    if (random.nextInt(4) >= (if (cluster) 3 else 2)) 1 else 2 + random.nextInt(2)
  }

  /**
   * In half of the scenarios, on a cluster in more, processes end in an orderly way. On a cluster these are executors,
   * usually in an action after the first. Otherwise, and sometimes on a cluster, it is the driver.
   */
  private def orderlyEnds(seed: Long, cluster: Boolean, inputs: Int, actions: Int): Seq[Fault] = {
    val random = numbersOf(seed, salt = 6)
    if (random.nextInt(4) >= (if (cluster) 3 else 2)) Nil
    else Seq.fill(1 + random.nextInt(2)) {
      // Not batch 0: it reads no state, and would be the first batch to be struck by a fault without a number.
      val batch = Some(1L + random.nextInt(inputs))
      val end = Fault.EndOrderly(pick(random, Seq(0L, 100L, 200L, 400L)))
      val action =
        if (random.nextInt(4) == 0) Fault.AnyAction else (1 + random.nextInt(actions)).max(2.min(actions)).toString
      random.nextInt(if (cluster) 8 else 4) match {
        case 0 =>
          Fault(pick(random, Seq(Fault.Create, Fault.Published)), pick(random, DriverWrites), batch, end)
        case 1 => Fault(Fault.Published, pick(random, TaskWrites), None, end)
        case _ => Fault(pick(random, Fault.OfTasks), action, batch, end)
      }
    }
  }

  private def numbersOf(seed: Long, salt: Int): Random =
    new Random(new SplittableRandom(~seed ^ (salt.toLong << 32)).nextLong())

  /** Settings that make changelogs, snapshots and cleaning occur within a few batches. */
  private def settings(random: Random): Map[String, String] = Map(
    FaultyCheckpointFileManager.DelegateKey -> pick(random, Seq(LocalFiles, LocalFiles, SparkFiles)),
    "spark.penstock.state.inlineBytes" -> pick(random, Seq("0", "0", "4194304")),
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> pick(random, Seq("1", "2", "10")),
    "spark.sql.streaming.minBatchesToRetain" -> pick(random, Seq("1", "2", "100")),
    // Spark takes a half-written file of a dead driver's first batch for another query's and refuses to start.
    SQLConf.STREAMING_VERIFY_CHECKPOINT_DIRECTORY_EMPTY_ON_START.key -> "false"
  )

  /** Sorts the inputs' numbers, so that event time increases. */
  private def ordered(steps: Seq[String]): Seq[String] = {
    val numbers = steps.filter(_.startsWith("feed")).map(_.split(' ')(1).toInt).sorted.iterator
    steps.map { s =>
      if (s.startsWith("feed")) s.split(' ').updated(1, numbers.next().toString).mkString(" ") else s
    }
  }

  /** A random fault. Every input makes one batch, or two if a watermark moves. */
  private def fault(random: Random, cluster: Boolean, inputs: Int): Fault = {
    val batch = if (random.nextInt(4) == 0) None else Some(random.nextInt(inputs + 1).toLong)
    val delay = Fault.Delay(50L + random.nextInt(400))
    random.nextInt(6) match {
      case 0 | 1 =>
        val moment = pick(random, Seq(Fault.Create, Fault.Publish, Fault.Published))
        val effects =
          Seq(Fault.Fail, Fault.Die, Fault.Die, delay) ++ Option.when(moment == Fault.Published)(Fault.Exists)
        Fault(moment, pick(random, DriverWrites), batch, pick(random, effects))
      case 2 | 3 =>
        val moment = pick(random, Seq(Fault.Create, Fault.Publish, Fault.Published))
        val effects = Seq(Fault.Fail, Fault.Die, delay) ++ Option.when(moment == Fault.Published)(Fault.Exists)
        // Names of snapshots start with a version, and few versions have a snapshot.
        val place = pick(random, TaskWrites)
        Fault(moment, place, if (place == "snapshots") None else batch, pick(random, effects))
      case 4 =>
        val moment = pick(random, Seq(Fault.Open, Fault.Open, Fault.List, Fault.Delete))
        Fault(moment, pick(random, Reads), None, pick(random, Seq(Fault.Fail, delay)))
      case 5 =>
        val moment = pick(random, Fault.OfTasks)
        // Only the driver knows the locations of map outputs, so in a cluster a task cannot choose one to lose.
        val lost = Option.when(moment == Fault.FirstRow && !cluster)(Fault.LoseMapOutput)
        Fault(moment, "-", batch, pick(random, Seq(Fault.Fail, Fault.Die, delay) ++ lost))
    }
  }

  private def pick[A](random: Random, from: Seq[A]): A = from(random.nextInt(from.size))
}
