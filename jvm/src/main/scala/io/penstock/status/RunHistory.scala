package io.penstock.status

import java.util.UUID

import scala.collection.immutable.SortedMap

import org.apache.spark.sql.streaming.StreamingQueryProgress

import io.penstock.telemetry.ShardsMeasured

/**
 * History of a run of a query.
 *
 * @param startedAt
 *   start of the run, ISO 8601, UTC
 * @param exception
 *   error that ended the run; None if there was none
 * @param batches
 *   progress of completed batches, oldest first
 * @param regions
 *   measurements of each region in the newest batch in which its shards were bound
 */
final case class RunHistory(
    id: UUID,
    runId: UUID,
    name: Option[String],
    startedAt: String,
    ended: Boolean = false,
    exception: Option[String] = None,
    batches: Vector[StreamingQueryProgress] = Vector.empty,
    regions: SortedMap[Long, ShardsMeasured] = SortedMap.empty
) {

  /** Adds a batch; only the newest `maxBatches` batches are kept. */
  def ran(progress: StreamingQueryProgress, maxBatches: Int): RunHistory =
    copy(batches = (batches :+ progress).takeRight(maxBatches))

  def measured(shards: ShardsMeasured): RunHistory = copy(regions = regions.updated(shards.region, shards))
}
