package io.penstock.telemetry

import java.util.SplittableRandom

import org.scalatest.funsuite.AnyFunSuite

class SampleSpacingSuite extends AnyFunSuite {
  private val timingNs = 200L
  private val budget = 0.01

  /** Ratio of the estimated to the true time, and the number of timed rows. `cost` gives the time of each row. */
  private def estimate(rows: Int, seed: Long)(cost: Int => Long): (Double, Int) = {
    val spacing = new SampleSpacing(seed, budget, timingNs)
    var estimated, truth = 0.0
    var timed = 0
    (0 until rows).foreach { row =>
      truth += cost(row)
      if (spacing.takes()) {
        estimated += spacing.timed(cost(row))
        timed += 1
      }
    }
    (estimated / truth, timed)
  }

  test("slow rows are all timed, and their time is exact") {
    val random = new SplittableRandom(1)
    val costs = Array.fill(500)(20000L + random.nextLong(1000000L))
    assert(estimate(costs.length, 1)(costs(_)) == ((1.0, costs.length)))
  }

  test("the estimate for fast rows is right on average, and timing stays within its budget") {
    (1L to 20L).foreach { seed =>
      val random = new SplittableRandom(seed)
      val costs = Array.fill(200000)(50L + random.nextLong(500L))
      val (ratio, timed) = estimate(costs.length, seed)(costs(_))
      assert(math.abs(ratio - 1) < 0.05, s"seed $seed")
      assert(timed * timingNs < 1.3 * budget * costs.sum.toDouble, s"seed $seed: $timed timed")
    }
  }

  test("rows with a periodic pattern are estimated without bias") {
    Seq(2, 20, 64, 100).foreach { period =>
      val ratios = (1L to 20L).map(seed => estimate(300000, seed)(row => if (row % period == 0) 2000L else 200L)._1)
      assert(math.abs(ratios.sum / ratios.size - 1) < 0.02, s"period $period: $ratios")
    }
  }

  test("a pause on a row that stands for many rows does not count many times") {
    val pauseNs = 50000000L
    (1L to 20L).foreach { seed =>
      val (ratio, _) = estimate(1000000, seed)(row => if (row == 500000) pauseNs else 200L)
      assert(ratio < 1.1, s"seed $seed")
    }
  }

  test("after the first of a few slow rows among fast ones, the others are all timed") {
    val slowNs = 10000000L
    val ratios = (1L to 200L).map(seed => estimate(10020, seed)(row => if (row < 10000) 1000L else slowNs)._1)
    // One in 20 rows of 1 us is timed, so the first slow row that is timed may be any of the 20, or none.
    assert(ratios.forall(_ < 1.05) && ratios.count(_ > 0.5) > 80 && ratios.max > 0.9, ratios)
  }

  test("rows that become slow are all timed again") {
    val (ratio, _) = estimate(30000, 7)(row => if (row < 20000) 100L else 1000000L)
    assert(math.abs(ratio - 1) < 0.05)
  }
}
