package org.apache.spark.sql.penstock.lease

import io.penstock.state.format.{SnapshotLag, StoreKey}
import io.penstock.telemetry.StateLoad

/**
 * What a run's state looks like in the checkpoint, and what was done for it in the background since the run began.
 *
 * @param lags
 *   of every store, after the newest batch that is durable
 * @param loads
 *   of every store of which tasks have told, what its shards amount to as they told it last
 * @param snapshotShards
 *   shards in the snapshot files
 * @param snapshotBytes
 *   of these shards
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
