package org.apache.spark.sql.penstock.integration.chaos

import java.util.SplittableRandom

import scala.util.Random

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.integration.cases.Matrix

import io.penstock.conf.PolicyChoice
import io.penstock.faults.{Fault, FaultyCheckpointFileManager}

/** Random scenarios, one per seed. */
object Scenarios {
  private val LocalFiles = "io.penstock.LocalCheckpointFileManager"
  private val SparkFiles =
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"

  /** What the driver writes once per batch, in the order of a batch. */
  private val DriverWrites = Seq("offsets", "epochs", "manifests", "commits")
  private val TaskWrites = Seq("changelogs", "snapshots")
  private val Reads = Seq("manifests", "changelogs", "snapshots", "epochs", "offsets", "commits")

  def of(seed: Long): Scenario = {
    // The first numbers of java.util.Random are alike for seeds that are near each other.
    val random = new Random(new SplittableRandom(seed).nextLong())
    val query = pick(random, Matrix.all)
    val cluster = random.nextInt(5) == 0
    val twice = !cluster && random.nextInt(6) == 0
    val inputs = 3 + random.nextInt(3)
    val actions = actionsOf(seed, cluster)
    val otherSettings = numbersOf(seed, salt = 7).nextBoolean()
    val steps = (0 until inputs).flatMap { number =>
      val rows = pick(random, Seq(0, 5, 60, 120))
      // A source in memory cannot give an application that starts what only the other one has fed.
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

  /** Of numbers of its own. Random places are other ones in every batch: most scenarios have them. */
  private def policy(seed: Long): String = {
    val random = numbersOf(seed, salt = 0)
    if (random.nextInt(3) > 0) "" else pick(random, PolicyChoice.Hybrid +: PolicyChoice.planned).toString
  }

  /** Second copies of shards, by a number of its own, as for policies. */
  private def copies(seed: Long, cluster: Boolean): Map[String, String] =
    if (cluster && numbersOf(seed, salt = 1).nextBoolean()) Map("spark.penstock.replicas" -> "2") else Map.empty

  /** In half of the scenarios sidecars end, those of the driver or of an executor. */
  private def ofSidecars(seed: Long, inputs: Int): Seq[Fault] = {
    val random = numbersOf(seed, salt = 2)
    if (random.nextBoolean()) Nil
    else Seq.fill(1 + random.nextInt(2)) {
      val batch = if (random.nextBoolean()) None else Some(random.nextInt(inputs + 1).toLong)
      if (random.nextInt(3) == 0) Fault(Fault.Create, pick(random, DriverWrites), batch, Fault.EndSidecars)
      else Fault(pick(random, Fault.OfTasks), "-", batch, Fault.EndSidecars)
    }
  }

  /** In half of the scenarios a batch is read several times, and in most of those on a cluster; by numbers of its own. */
  private def actionsOf(seed: Long, cluster: Boolean): Int = {
    val random = numbersOf(seed, salt = 3)
    if (random.nextInt(4) >= (if (cluster) 3 else 2)) 1 else 2 + random.nextInt(2)
  }

  /**
   * In half of the scenarios, and in most of those on a cluster, processes end in an orderly way: executors where there are
   * any, as a rule in an action after the first; else, and now and then, the driver.
   */
  private def orderlyEnds(seed: Long, cluster: Boolean, inputs: Int, actions: Int): Seq[Fault] = {
    val random = numbersOf(seed, salt = 6)
    if (random.nextInt(4) >= (if (cluster) 3 else 2)) Nil
    else Seq.fill(1 + random.nextInt(2)) {
      // The first batch, which reads no state, is the first that any fault without a number would strike.
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

  /** Settings that bring into a few batches what otherwise takes many: changelogs, snapshots, cleaning. */
  private def settings(random: Random): Map[String, String] = Map(
    FaultyCheckpointFileManager.DelegateKey -> pick(random, Seq(LocalFiles, LocalFiles, SparkFiles)),
    "spark.penstock.state.inlineBytes" -> pick(random, Seq("0", "0", "4194304")),
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> pick(random, Seq("1", "2", "10")),
    "spark.sql.streaming.minBatchesToRetain" -> pick(random, Seq("1", "2", "100")),
    // Spark takes a file that its first batch's driver left half written for another query's, and refuses to start.
    SQLConf.STREAMING_VERIFY_CHECKPOINT_DIRECTORY_EMPTY_ON_START.key -> "false"
  )

  /** Event time goes up, whatever numbers inputs were given. */
  private def ordered(steps: Seq[String]): Seq[String] = {
    val numbers = steps.filter(_.startsWith("feed")).map(_.split(' ')(1).toInt).sorted.iterator
    steps.map { s =>
      if (s.startsWith("feed")) s.split(' ').updated(1, numbers.next().toString).mkString(" ") else s
    }
  }

  /** Every input makes one batch, or two where a watermark moves. */
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
        // Names of snapshots begin with a version, of which few batches have any.
        val place = pick(random, TaskWrites)
        Fault(moment, place, if (place == "snapshots") None else batch, pick(random, effects))
      case 4 =>
        val moment = pick(random, Seq(Fault.Open, Fault.Open, Fault.List, Fault.Delete))
        Fault(moment, pick(random, Reads), None, pick(random, Seq(Fault.Fail, delay)))
      case 5 =>
        val moment = pick(random, Fault.OfTasks)
        // Only the driver knows where map outputs are, so in a cluster a task cannot pick one to lose.
        val lost = Option.when(moment == Fault.FirstRow && !cluster)(Fault.LoseMapOutput)
        Fault(moment, "-", batch, pick(random, Seq(Fault.Fail, Fault.Die, delay) ++ lost))
    }
  }

  private def pick[A](random: Random, of: Seq[A]): A = of(random.nextInt(of.size))
}
