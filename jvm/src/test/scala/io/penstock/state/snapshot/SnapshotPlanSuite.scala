package io.penstock.state.snapshot

import scala.collection.mutable
import scala.util.Random

import io.penstock.Seed
import io.penstock.state.snapshot.SnapshotPlan.Candidate
import org.scalatest.funsuite.AnyFunSuite

class SnapshotPlanSuite extends AnyFunSuite {

  /**
   * Runs batches that change every shard. Returns the shards written in each batch, and the longest chain of deltas.
   */
  private def run(shards: Int, batches: Int, minChanges: Int, budgetBytes: Long)(
      contentBytes: Int => Long,
      changedBytes: Int => Long
  ): (Seq[Seq[Int]], Int) = {
    val changes = mutable.ArrayBuffer.fill(shards)(0)
    var longest = 0
    val written = (0 until batches).map { batch =>
      val candidates = changes.indices.map(s => Candidate(s, changes(s), changes(s) * changedBytes(s), contentBytes(s)))
      val chosen = SnapshotPlan.choose(candidates, batch.toLong, minChanges, budgetBytes)
      chosen.foreach(changes(_) = 0)
      changes.indices.foreach(changes(_) += 1)
      longest = math.max(longest, changes.max)
      chosen
    }
    (written, longest)
  }

  test("shards take turns: no batch writes more than its share, and chains stay bounded") {
    val (written, longest) = run(256, 500, 10, Long.MaxValue)(_ => 1L << 20, _ => 1L << 20)
    assert(written.map(_.size).max == 26)
    assert(written.drop(20).forall(_.size >= 25))
    assert(longest <= 20)
  }

  test("a small state is written in one file per round, a larger one in as many files as it fills") {
    val (small, longest) = run(256, 500, 10, Long.MaxValue)(_ => 1000L, _ => 1000L)
    assert(small.drop(20).grouped(10).forall(_.filter(_.nonEmpty).map(_.size) == Seq(256)))
    assert(longest == 10)
    val (larger, _) = run(256, 500, 10, Long.MaxValue)(_ => 20000L, _ => 20000L)
    assert(larger.drop(20).grouped(10).forall(_.filter(_.nonEmpty).map(_.size) == Seq(64, 64, 64, 64)))
  }

  test("shards that change tasks in every batch do not wait longer") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    val changes = Array.fill(64)(0)
    (0L until 500L).foreach { batch =>
      changes.indices.groupBy(_ => r.nextInt(4)).foreach { case (task, shards) =>
        val candidates = shards.filter(changes(_) > 0).map(s => Candidate(s, changes(s), changes(s) * 1000L, 1000L))
        SnapshotPlan.choose(candidates, batch + task, 10, Long.MaxValue).foreach(changes(_) = 0)
      }
      changes.indices.foreach(changes(_) += 1)
      assert(changes.max <= 21, s"batch $batch")
    }
  }

  test("large shards with few changes wait longer, and also take turns") {
    val (written, longest) = run(256, 500, 10, Long.MaxValue)(_ => 1L << 20, _ => 100L)
    assert(written.map(_.size).max <= 26)
    assert(longest > 160 && longest <= 180)
  }

  test("the budget is kept, and the shard that has waited longest is next") {
    val (written, longest) = run(64, 1000, 2, budgetBytes = 4000L)(_ => 1000L, _ => 1000L)
    assert(written.forall(_.size <= 4))
    // 64 shards at 4 per batch: each is written every 16 batches. At first they wait for their turn.
    assert(longest <= 18)
    val (one, _) = run(8, 100, 1, budgetBytes = 10L)(_ => 1000L, _ => 1000L)
    assert(one.drop(1).forall(_.size == 1))
  }

  test("for any sizes, the budget is kept except for a single shard, and every shard has its turn") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    (0 until 100).foreach { _ =>
      val shards = 1 + r.nextInt(40)
      val sizes = Array.fill(shards)(1L + r.nextInt(10000))
      val minChanges = 1 + r.nextInt(10)
      val budget = 1L + r.nextInt(40000)
      val (written, _) =
        run(shards, 40 * minChanges + 4 * shards, minChanges, budget)(sizes(_), _ => 1L + r.nextInt(2000))
      written.foreach(chosen => assert(chosen.size <= 1 || chosen.map(sizes(_)).sum <= budget))
      assert(written.flatten.toSet == (0 until shards).toSet)
    }
  }

  test("a shard above the budget, or one that always fails, does not block the others") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    (0 until 60).foreach { _ =>
      val shards = 2 + r.nextInt(30)
      val minChanges = 1 + r.nextInt(10)
      val budget = 1000L + r.nextInt(20000)
      val sizes = Array.fill(shards)(if (r.nextInt(5) == 0) budget * (1 + r.nextInt(20)) else 1L + r.nextInt(1000))
      val fails = Set.from(Option.when(r.nextBoolean())(r.nextInt(shards)))
      val changes, failures = Array.fill(shards)(0)
      // A complete round after the 17 turns that a shard with few changes waits: by size, at worst one per batch.
      val bound = 18 * minChanges + shards
      (0L until 60L * minChanges + 4L * shards).foreach { batch =>
        val candidates = changes.indices.filter(changes(_) > 0)
          .map(s => Candidate(s, changes(s), changes(s) * 10L, sizes(s), failures(s)))
        val chosen = SnapshotPlan.choose(candidates, batch, minChanges, budget)
        val (failing, good) = chosen.partition(failures(_) > 0)
        assert(chosen.distinct == chosen && failing.size <= 1)
        assert(good.size <= 1 || good.map(sizes(_)).sum <= math.max(budget, sizes(good.head)))
        chosen.foreach(s => if (fails(s)) failures(s) += 1 else changes(s) = 0)
        changes.indices.foreach(changes(_) += 1)
        changes.indices.filterNot(fails).foreach(s => assert(changes(s) <= bound, s"shard $s in batch $batch"))
      }
      fails.foreach(s => assert(failures(s) > 1, "a failed shard is retried"))
    }
  }

  test("nothing is written if nothing is due") {
    assert(SnapshotPlan.choose(Seq(Candidate(0, 9, 1 << 20, 10L)), 0L, 10, Long.MaxValue).isEmpty)
    assert(SnapshotPlan.choose(Nil, 0L, 10, Long.MaxValue).isEmpty)
    assert(SnapshotPlan.choose(Seq(Candidate(0, 10, 1 << 20, 10L)), 10L, 10, Long.MaxValue) == Seq(0))
    assert(SnapshotPlan.choose(Seq(Candidate(0, 10, 1, 10L)), 10L, 10, Long.MaxValue).isEmpty)
  }
}
