package io.penstock.telemetry

import java.util.SplittableRandom

import org.scalatest.funsuite.AnyFunSuite

class RowCostsSuite extends AnyFunSuite {
  private val shards = 64

  /** What is learnt from batches whose rows have a true cost and a deviation of `noiseNs` each. */
  private def learnt(seed: Long, batches: Int, rowsPerShard: Int, noiseNs: Double)(costNs: Int => Double): RowCosts = {
    val random = new java.util.Random(seed)
    val costs = new RowCosts(shards)
    (1 to batches).foreach { _ =>
      val rows = Array.fill(shards)(random.nextInt(2 * rowsPerShard).toLong)
      val busy = Array.tabulate(shards) { s =>
        math.max(0.0, rows(s) * costNs(s) + random.nextGaussian() * noiseNs * math.sqrt(rows(s).toDouble)).toLong
      }
      costs.learn(rows, busy)
    }
    costs
  }

  test("nothing is known before the second batch") {
    val costs = new RowCosts(4)
    assert(costs.relative.isEmpty)
    costs.learn(Array(1L, 1L, 1L, 1L), Array(1L, 1000L, 1L, 1L))
    assert(costs.relative.isEmpty)
  }

  test("rows of equal cost are taken for equal, however noisy: nothing moves for noise") {
    for (seed <- 1L to 50L; noise <- Seq(0.0, 300.0, 3000.0)) {
      val costs = learnt(seed, batches = 10, rowsPerShard = 200, noise)(_ => 1000.0)
      val far = costs.relative.fold(0.0)(_.map(c => math.abs(c - 1)).max)
      // What one shard's mean of so many rows is off by: the answer must be much nearer.
      val raw = 4 * noise / 1000.0 / math.sqrt(200.0 * 6)
      assert(far <= math.max(raw / 2, 1e-9), s"seed $seed, noise $noise")
    }
  }

  test("a shard whose rows cost 20 times as much is known for it after two batches") {
    (1L to 50L).foreach { seed =>
      val costs = learnt(seed, batches = 2, rowsPerShard = 200, noiseNs = 500)(s => if (s == 5) 20000.0 else 1000.0)
      val found = costs.relative.get
      assert(math.abs(found(5) / found(6) - 20) < 3, s"seed $seed")
    }
  }

  test("costs that change are followed") {
    val costs = new RowCosts(2)
    val rows = Array(100L, 100L)
    (1 to 30).foreach(_ => costs.learn(rows, Array(100000L, 900000L)))
    assert(math.abs(costs.relative.get(1) - 1.8) < 0.05)
    (1 to 60).foreach(_ => costs.learn(rows, Array(900000L, 100000L)))
    assert(math.abs(costs.relative.get(0) - 1.8) < 0.1)
  }

  test("shards that had no rows yet cost what the mean row costs; batches without measurements change nothing") {
    val costs = new RowCosts(3)
    (1 to 5).foreach(_ => costs.learn(Array(10L, 10L, 0L), Array(10000L, 90000L, 0L)))
    val before = costs.relative.get
    assert(before(2) == 1.0 && before.forall(_ > 0))
    costs.learn(Array(10L, 10L, 10L), Array(0L, 0L, 0L))
    assert(costs.relative.get.sameElements(before))
  }

  test("costs are positive whatever is measured") {
    val random = new SplittableRandom(3)
    (1 to 200).foreach { _ =>
      val costs = new RowCosts(8)
      (1 to 6).foreach(_ => costs.learn(Array.fill(8)(random.nextLong(5)), Array.fill(8)(random.nextLong(1000000))))
      costs.relative.foreach(c => assert(c.forall(x => x >= 0 && !x.isNaN && !x.isInfinite)))
    }
  }
}
