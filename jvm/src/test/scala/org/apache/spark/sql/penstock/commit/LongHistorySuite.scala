package org.apache.spark.sql.penstock.commit

import java.io.File

import scala.util.Random

import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.state.snapshot.SnapshotPlan
import io.penstock.state.snapshot.SnapshotPlan.Candidate
import io.penstock.{SameOnEverySpark, Seed}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.tags.Slow

/**
 * Checks that after many batches the number and size of files depend on the retained batches, not on the past ones.
 *
 * `-Dpenstock.test.batches=1000000` makes the history longer.
 */
@SameOnEverySpark
@Slow
class LongHistorySuite extends AnyFunSuite with QueryRuns {
  private val batches = java.lang.Long.getLong("penstock.test.batches", 10000L).longValue
  private val retained = 10
  private val minChanges = 5
  private val keys = 50L

  /** Keys recur, so that the state itself does not grow. */
  override protected def keyOf(batch: Long): String = s"k${batch % keys}"

  /** Sizes of all files. Some may be deleted while they are listed. */
  private def sizes(folder: File): Seq[Long] =
    Option(folder.listFiles).toSeq.flatten.flatMap(f => if (f.isDirectory) sizes(f) else Seq(f.length))

  /** Runs one batch. Some shards change, inline or in files, and snapshots are written as planned. */
  private def step(c: QueryCommits, d: StateDirectory, batch: Long, r: Random): Unit = {
    open(c, batch)
    if (batch > 0) snapshotsBefore(c, d, batch)
    val shards = 0 until shardCount
    if (r.nextInt(4) == 0) commit(c, batch, shards, "all", inline = r.nextBoolean())
    else {
      // Two tasks. In rare batches both of them run twice.
      val (ones, others) = shards.partition(_ => r.nextBoolean())
      (0 until (if (r.nextInt(50) == 0) 2 else 1)).foreach { attempt =>
        if (ones.nonEmpty) commit(c, batch, ones, s"a$attempt", inline = r.nextBoolean())
        if (others.nonEmpty) commit(c, batch, others, s"b$attempt", inline = r.nextBoolean())
      }
    }
  }

  private def snapshotsBefore(c: QueryCommits, d: StateDirectory, batch: Long): Unit = {
    val m = d.readManifest(batch - 1, d.newestGenerations()(batch - 1))
    val shards = m.stores(store)
    val candidates = shards.indices.map { s =>
      val deltas = shards(s).deltas
      Candidate(s, deltas.size, deltas.map(_.section.length.toLong).sum, contentBytes = 1000L)
    }
    val due = SnapshotPlan.choose(candidates, batch, minChanges, budgetBytes = 2000L)
    if (due.nonEmpty) snapshot(c, batch, due.map(s => (s, shards(s).lineage, contentOf(c, m, s)(_)))): Unit
  }

  test("a checkpoint of many batches is as small as one of few") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    var c = commits(root(), minBatches = retained)
    val d = new StateDirectory(c.stateRoot, hadoop)
    var most = 0
    var bytes = 0L
    (0L until batches).foreach { b =>
      step(c, d, b, r)
      if (r.nextInt(200) == 0) {
        c = commits(c.stateRoot, minBatches = retained)
        assert(open(c, b + 1).base.stores.nonEmpty)
      }
      if (b % 100 == 99) {
        val there = sizes(new File(c.stateRoot))
        most = math.max(most, there.size)
        bytes = math.max(bytes, there.sum)
      }
    }
    val newest = d.readManifest(batches - 1, d.newestGenerations()(batches - 1))
    val chains = newest.stores(store).map(_.deltas.size)
    info(s"$batches batches: at most $most files of $bytes bytes; to open the newest ${newest.containers.size} of them")
    // Retained are 12 batches with up to five files each, and the files that their chains of up to 17 * minChanges
    // need.
    assert(most < 12 * 5 + 17 * minChanges * 3 + 10 * 5)
    assert(bytes < 2000000L)
    assert(chains.forall(_ <= 18 * minChanges))
    assert(content(c.stateRoot, batches - 1).forall(_.size == keys))
  }
}
