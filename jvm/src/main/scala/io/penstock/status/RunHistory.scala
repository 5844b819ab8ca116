package io.penstock.status

import java.util.UUID

import scala.collection.immutable.SortedMap

import org.apache.spark.sql.streaming.StreamingQueryProgress

import io.penstock.telemetry.ShardsMeasured

/**
 * What is remembered of a run of a query.
 *
 * @param startedAt
 *   ISO 8601, UTC
 * @param exception
 *   what ended it
 * @param batches
 *   progress of batches that ran, oldest first
 * @param regions
 *   of the newest batch that was bound
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

  /** With one more batch, the oldest of more than `most` forgotten. */
  def ran(progress: StreamingQueryProgress, most: Int): RunHistory =
    copy(batches = (batches :+ progress).takeRight(most))

  def measured(shards: ShardsMeasured): RunHistory = copy(regions = regions.updated(shards.region, shards))
}
