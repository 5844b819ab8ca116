package io.penstock.telemetry

import scala.collection.mutable

import io.penstock.state.format.SnapshotLag

/**
 * What one store did for one task in a batch.
 *
 * @param internalKeys
 *   keys in column families that are not the user's
 * @param overlayBytes
 *   heap of changes that were not handed over yet
 */
final case class StoreActivity(
    internalKeys: Long,
    opened: StoreTimings,
    commitNs: Long,
    committedBytes: Long,
    overlayBytes: Long
)

/** Where the time of opening a store went, and how its shards came. */
final class StoreTimings {
  var inMemoryShards: Int = 0

  /** Shards that came from other executors' memory, by transport. */
  val travelled: mutable.Map[String, Int] = mutable.Map.empty.withDefaultValue(0)
  def travelledShards: Int = travelled.values.sum
  var loadedShards: Int = 0

  /** Shards of which only later changes were read. */
  var caughtUpShards: Int = 0
  var foldedShards: Int = 0
  var loadNs: Long = 0L
  var foldNs: Long = 0L
}

/** A store after a batch, over all shards. */
final case class StoreContent(lag: SnapshotLag, load: StateLoad)

/** What was done in the background of a query's run since it began. */
final case class RunActivity(snapshotFiles: Long, snapshotShards: Long, snapshotBytes: Long, filesDeleted: Long)
