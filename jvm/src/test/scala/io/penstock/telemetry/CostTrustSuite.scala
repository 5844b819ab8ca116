package io.penstock.telemetry

import org.scalatest.funsuite.AnyFunSuite

class CostTrustSuite extends AnyFunSuite {
  private val shards = 8
  private val tasks = 2
  private val rows = Array.fill(shards)(10L)

  private def batch(rowNs: Double*) = ShardSamples(Array.fill(shards)(5), rowNs.padTo(shards, 1000.0).toArray)
  private def costs(of: Double*) = Some(of.padTo(shards, 1.0).toArray)
  private val all = rows.indices.toArray
  private val trust = new CostTrust(shards)
  private def nearer(of: Option[Array[Double]], came: ShardSamples) = CostTrust.nearer(of.get, rows, came, all)
  private def isTrusted(trust: CostTrust, of: Option[Array[Double]]) = trust.trusted(of).nonEmpty

  test("costs that foretell all are nearer by all that rows are off, and those that foretell nothing farther") {
    // By rows each shard is thought to take 27/8 of what the usual ones took.
    val off = (20 - 27.0 / 8 + 7 * (27.0 / 8 - 1)) / 27
    assert(math.abs(nearer(costs(20.0), batch(20000.0)).get - off) < 1e-9)
    assert(nearer(costs(20.0), batch()).get < -0.9)
    // Too little, in the right direction; too much; and the wrong shard.
    assert(nearer(costs(4.0), batch(20000.0)).get > 0.25)
    assert(nearer(costs(20.0), batch(4000.0)).get < 0.0)
    assert(nearer(costs(1.0, 20.0), batch(20000.0)).get < 0.0)
  }

  test("in magnitude half the way is as good as none, and dearer than foretold is as good as foretold") {
    val found = Seq(1.0, 0.5, 4.0, 16.0, 256.0).map(CostTrust.nearerInMagnitude(16.0, _))
    assert(found.zip(Seq(-1.0, -1.0, 0.0, 1.0, 1.0)).forall { case (f, expected) => math.abs(f - expected) < 1e-9 })
  }

  test("the advantage does not depend on the unit of time, nor on shards that are noise in both beliefs") {
    val noisy = batch(20000.0, 300.0, 5000.0, 100.0)
    val (one, other) = (nearer(costs(20.0), noisy), nearer(costs(20.0), noisy.copy(rowNs = noisy.rowNs.map(_ * 7))))
    assert(math.abs(one.get - other.get) < 1e-9 && one.get > 0.3)
  }

  test("batches without rows, or in which none was timed, say nothing") {
    (1 to 9).foreach { _ =>
      trust.score(costs(20.0), new Array[Long](shards), batch(20000.0), tasks)
      trust.score(costs(20.0), rows, ShardSamples(new Array[Int](shards), new Array[Double](shards)), tasks)
    }
    assert(!isTrusted(trust, costs(20.0)))
  }

  test("a shard that is far dearer counts after two batches, whatever others seem to cost") {
    val (trust, known) = (new CostTrust(shards), costs(20.0, 30.0, 1.5))
    // The second was paused.
    trust.score(known, rows, batch(20000.0, 1000.0, 1500.0), tasks)
    assert(!isTrusted(trust, known))
    trust.score(known, rows, batch(20000.0, 1000.0, 1500.0), tasks)
    assert(trust.trusted(known).map(_.take(3).toSeq).contains(Seq(20.0, 1.0, 1.0)))
  }

  test("costs that differ little count when all of them have won for long enough") {
    val (trust, known) = (new CostTrust(shards), costs(1.2, 0.8, 1.2, 0.8))
    val needed = Iterator.from(1).find { _ =>
      trust.score(known, rows, batch(1200.0, 800.0, 1200.0, 800.0), tasks)
      isTrusted(trust, known)
    }
    assert(needed.contains(3) && trust.trusted(known) == known)
  }

  test("one batch that shows the contrary is enough, and each time it takes twice as many to win again") {
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
    // The one claim, and the other, in turn.
    assert(wins == Seq(2, 3, 4, 6, 8, 12))
  }

  test("other shards go on with the claims of those that they were") {
    val trust = new CostTrust(shards)
    val mixed = costs(20.0, 30.0)
    (1 to 2).foreach(_ => trust.score(mixed, rows, batch(20000.0), tasks))
    val other = trust.of(Array(1, 0, RowCosts.Unknown))
    assert(other.trusted(Some(Array(5.0, 6.0, 7.0))).map(_.toSeq).contains(Seq(1.0, 6.0, 1.0)))
  }

  test("costs that foretell a little worse than rows for some batches count no longer") {
    val trust = new CostTrust(shards)
    (1 to 3).foreach(_ => trust.score(costs(3.0), rows, batch(3000.0), tasks))
    assert(isTrusted(trust, costs(3.0)))
    // 1.7 instead of 3: rows are nearer, by a little.
    val left = (1 to 20).takeWhile { _ =>
      trust.score(costs(3.0), rows, batch(1700.0), tasks)
      isTrusted(trust, costs(3.0))
    }
    assert(left.nonEmpty && left.size < 10, left)
  }

  test("where shards cannot be told apart any more, costs have to win anew") {
    val trust = new CostTrust(shards)
    (1 to 3).foreach(_ => trust.score(costs(20.0), rows, batch(20000.0), tasks))
    trust.score(None, rows, batch(), tasks)
    assert(!isTrusted(trust, costs(20.0)))
  }
}
