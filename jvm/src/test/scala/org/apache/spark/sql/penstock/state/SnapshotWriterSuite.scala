package org.apache.spark.sql.penstock.state

import java.nio.file.{Files, Path}
import java.util.UUID
import java.util.concurrent.{CountDownLatch, Executors}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.commit.SnapshotsWritten
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.unsafe.Platform

import io.penstock.Patience
import io.penstock.errors.PenstockException
import io.penstock.state.engine.ShardState
import io.penstock.state.format.{ByteSink, ChangeSet, FamilyTraits, StoreKey}
import io.penstock.state.memory.{MemoryAccount, MemoryBound}
import org.scalatest.funsuite.AnyFunSuite

/** How slow, rejected and failed snapshots are counted. */
class SnapshotWriterSuite extends AnyFunSuite with Patience {
  private val store = StoreKey(0L, "default")
  private val run = UUID.randomUUID()
  private val threads = Executors.newCachedThreadPool()
  private val metrics = new ExecutorMetrics(new ShardStores, MemoryBound.none)
  private val hadoop = new Configuration()
  hadoop.set("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")

  private def directory(root: Path = Files.createTempDirectory("penstock-snapshots")) =
    new StateDirectory(root.toString, hadoop)

  private def slot(shard: Int, version: Long): ShardSlot = {
    val out = new ByteSink
    val writer = new ChangeSet.Writer(out)
    writer.family("f", FamilyTraits(ordered = false, multiValued = false))
    writer.put("k".getBytes, Platform.BYTE_ARRAY_OFFSET.toLong, 1, null, 0L, 0)
    writer.finish()
    val state = new ShardState
    state(out.array, 0, out.size)
    val s = new ShardSlot(shard, new MemoryAccount())
    s.open(UUID.randomUUID(), version)(ShardSlot.Loaded(state, 3, 30L)).close()
    s
  }

  private def request(d: StateDirectory, slot: ShardSlot) = new SnapshotWriter.Request(run, d, store, slot)

  private def soon(check: => Boolean): Unit = eventually(assert(check))

  test("shards that are requested together share a file, named by the newest version") {
    val reported = mutable.Buffer[SnapshotsWritten]()
    val goOn = new CountDownLatch(1)
    val writer = new SnapshotWriter(
      threads,
      m => {
        goOn.await()
        reported.synchronized(reported += m): Unit
      },
      metrics
    )
    val slots = Seq(slot(0, 4L), slot(1, 6L), slot(2, 5L))
    val d = directory()
    writer.request(request(d, slots.head))
    slots.foreach(s => writer.request(request(d, s)))
    goOn.countDown()
    soon(slots.forall(_.snapshotCandidate.isEmpty))
    // A shard that is already being written is not written twice.
    assert(reported.synchronized(reported.toSeq).flatMap(_.entries.map(_.section.shard)).sorted == Seq(0, 1, 2))
    assert(reported.last.container.version == 6L)
    assert(d.list("snapshots").size == reported.size)
  }

  test("a snapshot that the driver rejects counts as failed, and the next accepted one as written") {
    var refuse = true
    val writer =
      new SnapshotWriter(threads, _ => if (refuse) throw new PenstockException("PENSTOCK_TEST", "no"), metrics)
    val s = slot(0, 4L)
    val d = directory()
    writer.request(request(d, s))
    soon(s.snapshotCandidate.exists(_.failures == 1))
    assert(s.snapshotCandidate.exists(_.changes == 3))
    refuse = false
    soon {
      writer.request(request(d, s))
      s.snapshotCandidate.isEmpty
    }
  }

  test("hanging files of one query do not block snapshots of another") {
    val hung = new CountDownLatch(1)
    val (one, other) = (slot(0, 1L), slot(0, 1L))
    new SnapshotWriter(threads, _ => hung.await(), metrics).request(request(directory(), one))
    new SnapshotWriter(threads, _ => (), metrics).request(request(directory(), other))
    soon(other.snapshotCandidate.isEmpty)
    assert(one.snapshotCandidate.nonEmpty)
    hung.countDown()
    soon(one.snapshotCandidate.isEmpty)
  }
}
