package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, TimeUnit}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.{SnapshotEntry, SnapshotsWritten, StateCommits}
import org.apache.spark.sql.penstock.lease.RegionLease
import org.apache.spark.util.ThreadUtils

import io.penstock.state.format._

/**
 * Writes shards as snapshots, in the background, several to a file. A snapshot that fails or comes too late costs a longer
 * chain of changes and nothing else. Also drops shards of queries that have ended.
 */
object Snapshots extends Logging {
  private val FileBytes = 16 << 20
  private val SweepEveryMs = 30000L

  final private class Request(
      val region: RegionLease,
      val store: StoreKey,
      val slot: ShardSlot,
      val hadoopConf: Configuration
  )

  private val queue = new ConcurrentLinkedQueue[Request]()
  private val queued = ConcurrentHashMap.newKeySet[ShardSlot]()

  // An executor, because it replaces a thread that an error has ended.
  private lazy val worker = {
    val w = ThreadUtils.newDaemonSingleThreadScheduledExecutor("penstock-snapshots")
    w.scheduleWithFixedDelay(() => guarded(sweep()), SweepEveryMs, SweepEveryMs, TimeUnit.MILLISECONDS)
    w
  }

  /** Asks for a snapshot of the shard as it is at the beginning of the lease's batch. */
  def request(region: RegionLease, store: StoreKey, slot: ShardSlot, hadoopConf: Configuration): Unit =
    if (queued.add(slot)) {
      queue.add(new Request(region, store, slot, hadoopConf))
      worker.execute(() => drain())
    }

  /** Writes everything that waits; requests that come together share files. */
  private def drain(): Unit = {
    val requests = Iterator.continually(queue.poll()).takeWhile(_ != null).toSeq
    requests.foreach(r => queued.remove(r.slot))
    requests.groupBy(r => (r.region.runId, r.region.stateRoot)).values.foreach(of => guarded(write(of)))
  }

  /** What fails here is tried again for the next batch. */
  private def guarded(work: => Unit): Unit =
    try work
    catch {
      case e: Throwable =>
        ExecutorMetrics.snapshotsFailed()
        logWarning("Penstock's background work on state failed; it goes on with the next", e)
    }

  private def write(requests: Seq[Request]): Unit = {
    val region = requests.head.region
    val directory = new StateDirectory(region.stateRoot, requests.head.hadoopConf)
    val payload = new ByteSink(1 << 16)
    val entries = mutable.ArrayBuffer[(SnapshotEntry, ShardSlot)]()
    def flush(): Unit = if (entries.nonEmpty) {
      val file = Container.Snapshots(region.batchId, UUID.randomUUID())
      val body = SectionTable.encode(entries.toSeq.map(_._1.section))
      directory.write(file.path, FileFormat.Kind.Snapshots, body, payload.array, payload.size)
      StateCommits.tell(
        SnapshotsWritten(
          region.runId,
          file,
          FileFormat.HeaderBytes.toLong + body.length,
          entries.toSeq.map(_._1)
        )
      )
      entries.foreach { case (e, slot) => slot.snapshotted(e.lineage) }
      ExecutorMetrics.snapshotsWritten(entries.size, payload.size.toLong)
      entries.clear()
      payload.clear()
    }
    requests.foreach { r =>
      val at = payload.size
      val (image, version, lineage) = r.slot.image
      image.writeTo(payload)
      val length = payload.size - at
      val crc = FileFormat.crc(payload.array, at, length)
      entries += ((SnapshotEntry(version, lineage, Section(r.store, r.slot.shard, at, length, crc)), r.slot))
      if (payload.size > FileBytes) flush()
    }
    flush()
  }

  private def sweep(): Unit = {
    val idle = ShardStores.idle(TimeUnit.MILLISECONDS.toNanos(SweepEveryMs))
    if (idle.nonEmpty && org.apache.spark.SparkEnv.get != null) {
      (idle -- StateCommits.live(idle).keySet).foreach(ShardStores.drop)
    }
  }
}
