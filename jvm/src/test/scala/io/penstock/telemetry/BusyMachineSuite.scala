package io.penstock.telemetry

import java.util.Random

import io.penstock.routing.{BindingOutcome, DeadBand, Limited, Load, StickyBinder}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.tags.Slow

/**
 * Checks what is learned and decided from batch to batch when row times are measured on a machine that others use. A
 * pure model of the chain from the sampled rows of tasks to the next binding. `-Dpenstock.test.runs=200` runs more of
 * it.
 */
@Slow
class BusyMachineSuite extends AnyFunSuite {
  import BusyMachineSuite._

  for (noise <- Noise.All)
    test(s"even keys, ${noise.name}: tasks keep even rows, and no advice is given") {
      val all = (1 to Runs).map(seed => played(seed.toLong, noise, _ => 1.0, even = true))
      all.foreach(ran => assert(ran.batches.forall(_.busiestRows <= 1.1), ran.summary))
      all.foreach(ran => assert(ran.batches.forall(_.limited.batches < BindingOutcome.AdviceAfter), ran.summary))
      val moving = all.filter(_.batches.drop(5).exists(_.moved > 0))
      assert(moving.size <= Runs / 20, moving.map(_.summary))
    }

  for (noise <- Noise.All)
    test(s"keys at random, ${noise.name}: rows stay as even as they arrive") {
      val moved = (1 to Runs).map { seed =>
        val ran = played(seed.toLong, noise, _ => 1.0, even = false)
        assert(ran.batches.forall(_.busiestRows <= 1.11 + 2.0 / ran.rowsPerTask), s"seed $seed: ${ran.summary}")
        ran.rowsPerTask -> ran.batches.drop(5).map(_.moved).sum.toDouble / (ran.batches.size - 5)
      }
      // With few rows per task, chance makes some task heavier than the dead band allows.
      val most = moved.groupBy(_._1 >= 1000).view.mapValues(_.map(_._2).max).toMap
      assert(most(true) < 2.0 && most(false) < 20.0, most)
    }

  for (noise <- Noise.All)
    test(s"one shard of 20 times the cost, ${noise.name}: trusted two batches after it is suspected") {
      val late = (1 to Runs).map { seed =>
        val ran = played(seed.toLong, noise, s => if (s == 77) 20.0 else 1.0, even = true)
        def first(cost: Batch => Double) = ran.batches.indexWhere(cost(_) > 8.0)
        first(_.trusted77) - first(_.suspected77)
      }
      assert(
        late.forall(_ >= 0) && late.count(_ > 2) <= Runs / 5 && late.count(_ > 4) <= Runs / 12,
        late.groupBy(identity).view.mapValues(_.size).toMap
      )
    }
}

private object BusyMachineSuite {
  private val Shards = 256
  private val Batches = 40
  private val Runs = Integer.getInteger("penstock.test.runs", 60).intValue

  final case class Ran(tasks: Int, rowsPerTask: Double, batches: Seq[Batch]) {
    def summary: String = s"$tasks tasks of $rowsPerTask rows: " +
      batches.map(b => f"${b.busiestRows}%.2f/${b.moved}").mkString(" ")
  }

  /**
   * @param suspected77
   *   Cost of a row of shard 77 over the typical row's, as seen in the batches before
   * @param trusted77
   *   Cost of a row of shard 77 over the typical row's, as used to bind the shards
   */
  final case class Batch(busiestRows: Double, moved: Int, suspected77: Double, trusted77: Double, limited: Limited)

  /** Deviation of a row's measured time from its cost, in ns. */
  final case class Noise(name: String, ofRow: Random => Double)

  object Noise {
    private def usual(random: Random) = math.exp(0.5 * random.nextGaussian())

    val All: Seq[Noise] = Seq(
      Noise("an idle machine", r => RowNs * usual(r)),
      // Rows in a cold JVM differ by far more.
      Noise("uneven rows", r => RowNs * math.exp(1.5 * r.nextGaussian())),
      Noise(
        "pauses of 1 to 5 ms",
        r => RowNs * usual(r) + (if (r.nextInt(200) == 0) 1e6 + 4e6 * r.nextDouble() else 0)
      ),
      Noise("occasional stops of 50 ms", r => RowNs * usual(r) + (if (r.nextInt(3000) == 0) 5e7 else 0))
    )
  }
  private val RowNs = 5000.0

  /** Runs a query for some batches. The seed determines the number of tasks and of rows. */
  def played(seed: Long, noise: Noise, cost: Int => Double, even: Boolean): Ran = {
    val random = new Random(seed)
    val tasks = Seq(2, 3, 4, 8, 16)(random.nextInt(5))
    val rowsPerShard = 1 + random.nextInt(20)
    val (costs, trust) = (new RowCosts(Shards), new CostTrust(Shards))
    var taskOf = Option.empty[Array[Int]]
    var deadBand = DeadBand.Empty
    var limited = Limited.Never
    val batches = (1 to Batches).map { _ =>
      val rows = if (even) Array.fill(Shards)(rowsPerShard.toLong) else spread(random, rowsPerShard * Shards)
      val suspected = costs.relative
      val trusted = trust.trusted(suspected)
      val load = Load.expected(rows, trusted)
      val bound = new StickyBinder(1.003, deadBand).bind(load, tasks, taskOf)
      val moved = taskOf.fold(0)(before => Load.moved(Some(before), bound))
      val times = new SampledTimes(Shards)
      val speed = 1.0 + 3.0 * random.nextDouble()
      val spacing = Array.fill(tasks)(new SampleSpacing(random.nextLong(), 0.01, 200L))
      var workNs = 0.0
      // Rows arrive in random order of shards.
      random.ints(0, Shards).limit(3L * rows.sum).toArray.foldLeft(rows.clone()) { (left, s) =>
        if (left(s) > 0) {
          left(s) -= 1
          val ns = math.max(1.0, cost(s) * speed * noise.ofRow(random))
          workNs += ns
          val sampling = spacing(bound(s))
          if (sampling.takes()) {
            val weight = sampling.weight.toLong
            times.add(s, sampling.timed(ns.toLong), weight)
          }
        }
        left
      }
      val samples = ShardSamples(Array.tabulate(Shards)(times.samples), Array.tabulate(Shards)(times.rowNs))
      trust.score(suspected, rows, samples, tasks)
      costs.learn(samples)
      val mean = samples.rowNs.sum / Shards
      deadBand = DeadBand(math.sqrt(times.variance) / mean, workNs / 1e6 / load.sum)
      taskOf = Some(bound)
      val heaviest = load.indexOf(load.max)
      val expected = Load.imbalance(Load.ofTasks(load, bound, tasks))
      limited = limited.after(
        BindingOutcome(None, expected, 1.0, moved, tasks, heaviest, load.max.toDouble / load.sum, None).limit
      )
      Batch(
        Load.imbalance(Load.ofTasks(rows, bound, tasks)),
        moved,
        suspected.fold(1.0)(_(77)),
        trusted.fold(1.0)(_(77)),
        limited
      )
    }
    Ran(tasks, rowsPerShard.toDouble * Shards / tasks, batches)
  }

  private def spread(random: Random, rows: Int): Array[Long] = {
    val counts = new Array[Long](Shards)
    (1 to rows).foreach(_ => counts(random.nextInt(Shards)) += 1)
    counts
  }
}
