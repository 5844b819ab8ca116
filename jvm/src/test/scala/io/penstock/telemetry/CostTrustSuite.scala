package io.penstock.telemetry

import org.scalatest.funsuite.AnyFunSuite

class CostTrustSuite extends AnyFunSuite {
  private val shards = 8
  private val tasks = 2
  private val rows = Array.fill(shards)(10L)

  private def batch(rowNs: Double*) = ShardSamples(Array.fill(shards)(5), rowNs.padTo(shards, 1000.0).toArray)
  private def costs(rowCosts: Double*) = Some(rowCosts.padTo(shards, 1.0).toArray)
  private val all = rows.indices.toArray
  private val trust = new CostTrust(shards)
  private def nearer(costs: Option[Array[Double]], samples: ShardSamples) =
    CostTrust.nearer(costs.get, rows, samples, all)
  private def isTrusted(trust: CostTrust, costs: Option[Array[Double]]) = trust.trusted(costs).nonEmpty

  test("costs that predict everything score the full error of rows; useless costs score below zero") {
    // By rows alone, each shard would be expected to take 27/8 of a usual shard's time.
    val off = (20 - 27.0 / 8 + 7 * (27.0 / 8 - 1)) / 27
    assert(math.abs(nearer(costs(20.0), batch(20000.0)).get - off) < 1e-9)
    assert(nearer(costs(20.0), batch()).get < -0.9)
    // Too little in the right direction, then too much, then the wrong shard.
    assert(nearer(costs(4.0), batch(20000.0)).get > 0.25)
    assert(nearer(costs(20.0), batch(4000.0)).get < 0.0)
    assert(nearer(costs(1.0, 20.0), batch(20000.0)).get < 0.0)
  }

  test("in magnitude, half the way scores as none, and exceeding the prediction scores as meeting it") {
    val found = Seq(1.0, 0.5, 4.0, 16.0, 256.0).map(CostTrust.nearerInMagnitude(16.0, _))
    assert(found.zip(Seq(-1.0, -1.0, 0.0, 1.0, 1.0)).forall { case (f, expected) => math.abs(f - expected) < 1e-9 })
  }

  test("the score does not depend on the unit of time or on shards that are noise in both predictions") {
    val noisy = batch(20000.0, 300.0, 5000.0, 100.0)
    val (one, other) = (nearer(costs(20.0), noisy), nearer(costs(20.0), noisy.copy(rowNs = noisy.rowNs.map(_ * 7))))
    assert(math.abs(one.get - other.get) < 1e-9 && one.get > 0.3)
  }

  test("batches without rows or without timed rows are ignored") {
    (1 to 9).foreach { _ =>
      trust.score(costs(20.0), new Array[Long](shards), batch(20000.0), tasks)
      trust.score(costs(20.0), rows, ShardSamples(new Array[Int](shards), new Array[Double](shards)), tasks)
    }
    assert(!isTrusted(trust, costs(20.0)))
  }

  test("a much more expensive shard is trusted after two batches, whatever others seem to cost") {
    val (trust, known) = (new CostTrust(shards), costs(20.0, 30.0, 1.5))
    // The second shard suffered a pause.
    trust.score(known, rows, batch(20000.0, 1000.0, 1500.0), tasks)
    assert(!isTrusted(trust, known))
    trust.score(known, rows, batch(20000.0, 1000.0, 1500.0), tasks)
    assert(trust.trusted(known).map(_.take(3).toSeq).contains(Seq(20.0, 1.0, 1.0)))
  }

  test("costs that differ little are trusted when all of them have won for long enough") {
    val (trust, known) = (new CostTrust(shards), costs(1.2, 0.8, 1.2, 0.8))
    val needed = Iterator.from(1).find { _ =>
      trust.score(known, rows, batch(1200.0, 800.0, 1200.0, 800.0), tasks)
      isTrusted(trust, known)
    }
    assert(needed.contains(3) && trust.trusted(known) == known)
  }

  test("one contrary batch ends trust, and each time the required number of wins doubles") {
    val trust = new CostTrust(shards)
    def winsUntilTrusted() = Iterator.from(1).find { _ =>
      trust.score(costs(20.0), rows, batch(20000.0), tasks)
      isTrusted(trust, costs(20.0))
    }.get
    val wins = (1 to 6).map { _ =>
      val n = winsUntilTrusted()
      trust.score(costs(20.0), rows, batch(), tasks)
      assert(!isTrusted(trust, costs(20.0)))
      n
    }
    // The two claims of the test lose and win in turn.
    assert(wins == Seq(2, 3, 4, 6, 8, 12))
  }

  test("other shards inherit the claims of their predecessors") {
    val trust = new CostTrust(shards)
    val mixed = costs(20.0, 30.0)
    (1 to 2).foreach(_ => trust.score(mixed, rows, batch(20000.0), tasks))
    val other = trust.of(Array(1, 0, RowCosts.Unknown))
    assert(other.trusted(Some(Array(5.0, 6.0, 7.0))).map(_.toSeq).contains(Seq(1.0, 6.0, 1.0)))
  }

  test("costs that predict slightly worse than rows for some batches lose trust") {
    val trust = new CostTrust(shards)
    (1 to 3).foreach(_ => trust.score(costs(3.0), rows, batch(3000.0), tasks))
    assert(isTrusted(trust, costs(3.0)))
    // 1.7 instead of 3: rows are slightly nearer.
    val left = (1 to 20).takeWhile { _ =>
      trust.score(costs(3.0), rows, batch(1700.0), tasks)
      isTrusted(trust, costs(3.0))
    }
    assert(left.nonEmpty && left.size < 10, left)
  }

  test("costs lose their trust when shards cannot be distinguished any more") {
    val trust = new CostTrust(shards)
    (1 to 3).foreach(_ => trust.score(costs(20.0), rows, batch(20000.0), tasks))
    trust.score(None, rows, batch(), tasks)
    assert(!isTrusted(trust, costs(20.0)))
  }
}
