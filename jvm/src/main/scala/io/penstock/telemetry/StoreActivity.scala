package io.penstock.telemetry

import scala.collection.mutable

import io.penstock.state.format.SnapshotLag

/**
 * Activity of one store for one task in a batch.
 *
 * @param internalKeys
 *   Number of keys in Spark's internal column families
 * @param overlayBytes
 *   Heap bytes of the task's changes when it committed
 */
final case class StoreActivity(
    internalKeys: Long,
    opened: StoreTimings,
    commitNs: Long,
    committedBytes: Long,
    overlayBytes: Long
)

/** Times of the steps of opening a store, and the sources of its shards. */
final class StoreTimings {
  var inMemoryShards: Int = 0

  /** Number of shards that were received from other executors' memory, by transport. */
  val travelled: mutable.Map[String, Int] = mutable.Map.empty.withDefaultValue(0)
  def travelledShards: Int = travelled.values.sum
  var loadedShards: Int = 0

  /** Number of shards in memory for which only later changes were read. */
  var caughtUpShards: Int = 0
  var foldedShards: Int = 0
  var loadNs: Long = 0L
  var foldNs: Long = 0L
}

/** State of a store after a batch, over all shards. */
final case class StoreContent(lag: SnapshotLag, load: StateLoad)

/** Work in the background since the start of a query's run. */
final case class RunActivity(snapshotFiles: Long, snapshotShards: Long, snapshotBytes: Long, filesDeleted: Long)
