package org.apache.spark.sql.penstock.lease

import io.penstock.state.format.SnapshotLag

/**
 * What a run's state looks like in the checkpoint, and what was done for it in the background since the run began.
 *
 * @param lags
 *   of every store, after the newest batch that is durable
 * @param snapshotShards
 *   shards in the snapshot files
 * @param snapshotBytes
 *   of these shards
 */
final case class StateReport(
    lags: Seq[SnapshotLag],
    snapshotFiles: Long,
    snapshotShards: Long,
    snapshotBytes: Long,
    filesDeleted: Long
)

object StateReport {
  val Empty: StateReport = StateReport(Nil, 0L, 0L, 0L, 0L)
}
