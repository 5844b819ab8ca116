package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, LinkedBlockingQueue, TimeUnit}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.{SnapshotEntry, SnapshotsWritten, StateCommits}
import org.apache.spark.sql.penstock.lease.RegionLease

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

  private val queue = new LinkedBlockingQueue[Request]()
  private val queued = ConcurrentHashMap.newKeySet[ShardSlot]()

  private lazy val worker: Thread = {
    val t = new Thread(() => run(), "penstock-snapshots")
    t.setDaemon(true)
    t.start()
    t
  }

  /** Asks for a snapshot of the shard as it is at the beginning of the lease's batch. */
  def request(region: RegionLease, store: StoreKey, slot: ShardSlot, hadoopConf: Configuration): Unit = {
    require(worker.isDaemon)
    if (queued.add(slot)) queue.put(new Request(region, store, slot, hadoopConf))
  }

  private def run(): Unit = {
    var lastSweep = System.currentTimeMillis()
    while (true) {
      try {
        val first = queue.poll(SweepEveryMs, TimeUnit.MILLISECONDS)
        if (first != null) {
          val more = new java.util.ArrayList[Request]()
          queue.drainTo(more)
          (first +: more.asScala.toSeq).groupBy(r => (r.region.runId, r.region.stateRoot)).values.foreach(write)
        }
        if (System.currentTimeMillis() - lastSweep > SweepEveryMs) {
          lastSweep = System.currentTimeMillis()
          sweep()
        }
      } catch {
        case NonFatal(e) =>
          ExecutorMetrics.snapshotsFailed()
          logWarning("Penstock's background work on state failed; it goes on with the next", e)
      }
    }
  }

  private def write(requests: Seq[Request]): Unit = {
    requests.foreach(r => queued.remove(r.slot))
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
      val (length, lineage) = r.slot.writeTo(payload)
      val crc = FileFormat.crc(payload.array, at, length)
      entries += ((SnapshotEntry(r.region.batchId, lineage, Section(r.store, r.slot.shard, at, length, crc)), r.slot))
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
