package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.execution.streaming.state._

/** Metrics of a store in `StreamingQueryProgress.stateOperators.customMetrics`; summed over the tasks of an operator. */
object StoreMetrics {
  val InternalKeys: StateStoreCustomMetric =
    StateStoreCustomSumMetric(
      "penstockInternalKeys",
      "keys in column families that are not the user's (indexes, timers)"
    )
  val ShardsLoaded: StateStoreCustomMetric =
    StateStoreCustomSumMetric("penstockShardsLoaded", "shards rebuilt from the checkpoint")
  val ShardsFolded: StateStoreCustomMetric =
    StateStoreCustomSumMetric("penstockShardsFolded", "shards brought to the batch's version in memory")
  val LoadTime: StateStoreCustomMetric =
    StateStoreCustomTimingMetric("penstockLoadTimeMs", "time to rebuild shards from the checkpoint")
  val FoldTime: StateStoreCustomMetric =
    StateStoreCustomTimingMetric("penstockFoldTimeMs", "time to bring shards to the batch's version in memory")
  val CommitTime: StateStoreCustomMetric =
    StateStoreCustomTimingMetric("penstockCommitTimeMs", "time to write changes and to tell the driver")
  val CommittedBytes: StateStoreCustomMetric =
    StateStoreCustomSizeMetric("penstockCommittedBytes", "bytes of changes that were committed")
  val OverlayBytes: StateStoreCustomMetric =
    StateStoreCustomSizeMetric("penstockOverlayBytes", "memory of the changes of the batch")

  val All: Seq[StateStoreCustomMetric] =
    Seq(InternalKeys, ShardsLoaded, ShardsFolded, LoadTime, FoldTime, CommitTime, CommittedBytes, OverlayBytes)
}
