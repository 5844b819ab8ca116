package io.penstock.telemetry

import java.util.SplittableRandom

import org.scalatest.funsuite.AnyFunSuite

class RowCostsSuite extends AnyFunSuite {
  private val shards = 64

  /** Samples of a batch in which every row of each shard was timed. */
  private def timed(rows: Array[Long], busyNs: Array[Long]): ShardSamples =
    ShardSamples(rows.map(_.toInt), rows.zip(busyNs).map { case (r, ns) => ns.toDouble / math.max(1L, r) })

  /** The costs learned from batches whose rows have a true cost and a deviation of `noiseNs` each. */
  private def learnt(seed: Long, batches: Int, rowsPerShard: Int, noiseNs: Double)(costNs: Int => Double): RowCosts = {
    val random = new java.util.Random(seed)
    val costs = new RowCosts(shards)
    (1 to batches).foreach { _ =>
      val rows = Array.fill(shards)((rowsPerShard / 2 + random.nextInt(rowsPerShard)).toLong)
      val busy = Array.tabulate(shards) { s =>
        math.max(0.0, rows(s) * costNs(s) + random.nextGaussian() * noiseNs * math.sqrt(rows(s).toDouble)).toLong
      }
      costs.learn(timed(rows, busy))
    }
    costs
  }

  test("costs are unknown before the third batch") {
    val costs = new RowCosts(4)
    assert(costs.relative.isEmpty)
    (1 to 2).foreach { _ =>
      costs.learn(timed(Array(1L, 1L, 1L, 1L), Array(1L, 1000L, 1L, 1L)))
      assert(costs.relative.isEmpty)
    }
    costs.learn(timed(Array(1L, 1L, 1L, 1L), Array(1L, 1000L, 1L, 1L)))
    assert(costs.relative.nonEmpty)
  }

  test("other shards inherit the costs of their predecessors, or start without any") {
    val costs = new RowCosts(4)
    def learn(into: RowCosts, expensive: Int, shards: Int): Unit =
      into.learn(timed(Array.fill(shards)(10L), Array.tabulate(shards)(s => if (s == expensive) 1000L else 10L)))
    (1 to 4).foreach(_ => learn(costs, 1, 4))
    val others = costs.of(Array(0, RowCosts.Unknown, 2, 3, 1))
    val known = others.relative.get
    assert(known(4) == costs.relative.get(1) && known.take(4).forall(_ == 1.0))
    (1 to 4).foreach(_ => learn(others, 1, 5))
    assert(others.relative.get.apply(1) > 1.0)
  }

  /** Imbalance that the shards' costs would cause on 4 tasks. */
  private def imbalance(costs: RowCosts): Double = costs.relative.fold(0.0) { c =>
    val tasks = c.grouped(shards / 4).map(_.sum).toSeq
    tasks.max * 4 / tasks.sum - 1
  }

  test("rows of equal cost are found equal whatever the noise") {
    for (seed <- 1L to 50L; noise <- Seq(0.0, 300.0, 3000.0)) {
      val costs = learnt(seed, batches = 10, rowsPerShard = 200, noise)(_ => 1000.0)
      assert(imbalance(costs) < 0.03, s"seed $seed, noise $noise")
    }
  }

  test("the shards that tasks read first, whose rows are cheap while hash maps are small, count as equal") {
    (1L to 50L).foreach { seed =>
      val costs = learnt(seed, batches = 12, rowsPerShard = 200, noiseNs = 500.0)(s => if (s < 4) 400.0 else 1000.0)
      assert(costs.relative.forall(_.take(4).forall(_ == 1.0)), s"seed $seed")
    }
  }

  test("many cheap shards are found cheap") {
    val costs = learnt(1L, batches = 12, rowsPerShard = 200, noiseNs = 500.0)(s => if (s < 24) 100.0 else 1000.0)
    assert(costs.relative.get.take(24).forall(c => c > 0.05 && c < 0.3), costs.relative.get.toSeq)
  }

  test("pauses that hit a few shards, and batches that are slow as a whole, are ignored") {
    (1L to 50L).foreach { seed =>
      val random = new java.util.Random(seed)
      val costs = new RowCosts(shards)
      (1 to 12).foreach { batch =>
        val rows = Array.fill(shards)(8L)
        val speed = 1.0 + 9.0 / batch
        val busy = Array.fill(shards)((8000 * speed * (1 + 0.1 * random.nextGaussian())).toLong)
        busy(((seed + 7 * batch) % shards).toInt) += 50000000L
        costs.learn(timed(rows, busy))
        assert(imbalance(costs) < 0.05, s"seed $seed, batch $batch")
      }
    }
  }

  test("a shard with rows of 20 times the cost is found after three batches") {
    (1L to 50L).foreach { seed =>
      val costs = learnt(seed, batches = 3, rowsPerShard = 200, noiseNs = 500)(s => if (s == 5) 20000.0 else 1000.0)
      val found = costs.relative.get
      assert(math.abs(found(5) / found(6) - 20) < 3, s"seed $seed: ${found(5)} ${found(6)}")
    }
  }

  test("small differences of all shards are found, with an error not much above the noise") {
    val errors = for (seed <- 1L to 50L) yield {
      val random = new java.util.Random(-seed)
      val costs = Array.fill(shards)(1000.0 * math.max(0.5, 1 + 0.16 * random.nextGaussian()))
      val found = learnt(seed, batches = 10, rowsPerShard = 300, noiseNs = 800)(costs(_)).relative.get
      val typical = costs.sorted.apply(shards / 2)
      math.sqrt((0 until shards).map(s => math.pow(found(s) - costs(s) / typical, 2)).sum / shards)
    }
    // The mean has the weight of 6.5 batches of 300 rows each.
    val noise = 0.8 / math.sqrt(6.5 * 300)
    assert(errors.sum / errors.size < 1.5 * noise && errors.max < 3 * noise, s"$errors, $noise")
  }

  test("a constant cost is found while the other rows become 100 times faster by JIT compilation") {
    (1L to 50L).foreach { seed =>
      val random = new java.util.Random(seed)
      val costs = new RowCosts(12)
      (1 to 7).foreach { batch =>
        val typicalNs = 600000.0 / math.pow(2.2, batch.toDouble)
        // Few rows are timed and each stands for many, so the readings of cheap shards are mostly noise.
        val busy =
          Array.tabulate(12)(s => if (s == 3) 200000000L else (typicalNs * math.exp(2 * random.nextGaussian())).toLong)
        costs.learn(timed(Array.fill(12)(60L), busy))
        if (batch >= 4) assert(costs.relative.exists(c => c(3) > 12 && c(3) == c.max), s"seed $seed, batch $batch")
      }
    }
  }

  test("pauses on every tenth shard of short, cold batches rarely look like a hot shard") {
    val found = (1L to 200L).flatMap { seed =>
      val random = new java.util.Random(seed)
      val costs = new RowCosts(shards)
      (1 to 8).map { _ =>
        val busy = Array.fill(shards) {
          val pauseNs = if (random.nextInt(10) == 0) 3000000.0 * random.nextDouble() else 0.0
          (20000 * math.exp(random.nextGaussian()) + pauseNs).toLong
        }
        costs.learn(timed(Array.fill(shards)(20L), busy))
        imbalance(costs)
      }
    }
    // A shard that was hit in most of its first batches looks expensive by all the evidence.
    assert(found.count(_ > 0.5) < 0.02 * found.size && found.sum < 0.05 * found.size)
  }

  test("changing costs are followed") {
    val costs = new RowCosts(8)
    val rows = Array.fill(8)(100L)
    def learn(batches: Int, expensive: Int): Unit =
      (1 to batches).foreach(_ =>
        costs.learn(timed(rows, Array.tabulate(8)(s => if (s == expensive) 900000L else 100000L)))
      )
    learn(30, expensive = 1)
    assert(math.abs(costs.relative.get(1) - 9) < 0.5)
    learn(60, expensive = 0)
    assert(math.abs(costs.relative.get(0) - 9) < 1 && costs.relative.get(1) < 1.5, costs.relative.get.toSeq)
  }

  test("shards without rows have the typical cost, and batches without measurements change nothing") {
    val costs = new RowCosts(3)
    (1 to 5).foreach(_ => costs.learn(timed(Array(10L, 10L, 0L), Array(10000L, 90000L, 0L))))
    val before = costs.relative.get
    assert(before(2) == 1.0 && before.forall(_ > 0))
    costs.learn(ShardSamples(new Array[Int](3), new Array[Double](3)))
    assert(costs.relative.get.sameElements(before))
  }

  test("costs are never negative or undefined, whatever is measured") {
    val random = new SplittableRandom(3)
    (1 to 200).foreach { _ =>
      val costs = new RowCosts(8)
      (1 to 6).foreach(_ =>
        costs.learn(timed(Array.fill(8)(random.nextLong(5)), Array.fill(8)(random.nextLong(1000000))))
      )
      costs.relative.foreach(c => assert(c.forall(x => x >= 0 && !x.isNaN && !x.isInfinite)))
    }
  }
}
