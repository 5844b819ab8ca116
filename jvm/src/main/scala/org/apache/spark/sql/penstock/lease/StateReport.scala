package org.apache.spark.sql.penstock.lease

import io.penstock.state.format.{SnapshotLag, StoreKey}
import io.penstock.telemetry.StateLoad

/**
 * The state of a run in the checkpoint, and the background work that was done for it since the run began.
 *
 * @param lags
 *   snapshot lag of every store after the newest durable batch
 * @param loads
 *   newest load of each shard that tasks reported, by store
 * @param snapshotFiles
 *   number of snapshot files that were written
 * @param snapshotShards
 *   number of shards in these files
 * @param snapshotBytes
 *   bytes of these shards in the files
 * @param filesDeleted
 *   number of files that were deleted because no retained batch needs them
 */
final case class StateReport(
    lags: Seq[SnapshotLag],
    loads: Map[StoreKey, StateLoad],
    snapshotFiles: Long,
    snapshotShards: Long,
    snapshotBytes: Long,
    filesDeleted: Long
)

object StateReport {
  val Empty: StateReport = StateReport(Nil, Map.empty, 0L, 0L, 0L, 0L)
}
