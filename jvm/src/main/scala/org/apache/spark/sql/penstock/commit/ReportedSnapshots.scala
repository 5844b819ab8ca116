package org.apache.spark.sql.penstock.commit

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease.StateReport

import io.penstock.errors.PenstockException
import io.penstock.state.format.{Reachability, SectionRef, SnapshotRef, StoreKey}

/**
 * Newest snapshot of each shard that executors have reported to a run. Not thread safe, except for [[totals]].
 *
 * @param minBatches
 *   `spark.sql.streaming.minBatchesToRetain`
 */
final private class ReportedSnapshots(runId: UUID, minBatches: Int) {
  private val newest = mutable.Map[(StoreKey, Int), SnapshotRef]()
  @volatile private var counted = StateReport.Empty

  /**
   * Records the snapshots of a file.
   *
   * @param batchId
   *   batch that the query is at
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SNAPSHOT_TOO_LATE if no manifest may refer to the file any more
   */
  def record(m: SnapshotsWritten, batchId: Long): Unit = {
    if (!Reachability.mayName(m.container, batchId, minBatches)) {
      throw new PenstockException(
        "PENSTOCK_SNAPSHOT_TOO_LATE",
        s"${m.container.path} of run $runId was reported when the query was at batch $batchId. With " +
          s"${SQLConf.MIN_BATCHES_TO_RETAIN.key}=$minBatches that file may already be deleted, so its snapshots are " +
          "not used. If this happens repeatedly, raise that setting or use longer batches"
      )
    }
    counted = counted.copy(
      snapshotFiles = counted.snapshotFiles + 1,
      snapshotShards = counted.snapshotShards + m.entries.size,
      snapshotBytes = counted.snapshotBytes + m.entries.map(_.section.length.toLong).sum
    )
    m.entries.foreach { e =>
      val s = e.section
      newest((s.store, s.shard)) =
        SnapshotRef(e.version, e.lineage, SectionRef(m.container, m.payloadAt + s.offset, s.length, s.crc))
    }
  }

  /** Snapshots that a manifest of the batch may refer to. Older ones are dropped. */
  def usableAt(batchId: Long): collection.Map[(StoreKey, Int), SnapshotRef] =
    newest.filterInPlace((_, s) => Reachability.mayName(s.section.container, batchId, minBatches))

  /** Numbers of files, shards and bytes that were reported. Does not wait. */
  def totals: StateReport = counted
}
