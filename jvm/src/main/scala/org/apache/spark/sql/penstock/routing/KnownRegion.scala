package org.apache.spark.sql.penstock.routing

import io.penstock.routing.{DeadBand, Limited, MoveCost}
import io.penstock.sharding.Layout
import io.penstock.telemetry.{CostTrust, RowCosts}

/**
 * What a run knows about a region at the end of a batch.
 *
 * @param layout
 *   Layout of the region's state in the batch
 * @param taskOf
 *   Task of each shard, as the binder proposed
 * @param executorOf
 *   Executor that each task was planned for; empty where Spark chose the executors
 * @param load
 *   Load of each shard in the batch
 * @param msPerLoad
 *   Milliseconds per unit of load; 0 where nothing was measured
 * @param rowDeviation
 *   Standard deviation of the time of rows of one shard, over the mean of that time
 * @param costs
 *   Learnt costs of the rows of each shard
 * @param trust
 *   Whether these costs have predicted the load of later batches
 * @param move
 *   Estimated cost to bring a shard from one executor's memory to another's
 * @param sampledHashes
 *   Hashes of the keys that the tasks sampled most, in the newest batch that had any
 * @param limited
 *   What limited the balance of the newest batches
 * @param timesTellLittle
 *   Whether most of the region's time could not be charged to rows
 * @param batches
 *   Number of batches that the run has completed
 */
final private[routing] case class KnownRegion(
    layout: Layout,
    taskOf: Array[Int],
    executorOf: IndexedSeq[String],
    load: Array[Long],
    msPerLoad: Double,
    rowDeviation: Double,
    costs: RowCosts,
    trust: CostTrust,
    move: MoveCost,
    sampledHashes: Seq[Int],
    limited: Limited,
    timesTellLittle: Boolean,
    batches: Int
) {

  /** Imbalance that the next batch tolerates. */
  def deadBand: DeadBand = DeadBand(rowDeviation, msPerLoad)

  /**
   * Cost of a row of each shard over that of the typical row, as far as the cost is trusted; None where all rows are
   * taken to cost the same.
   */
  def trustedCosts: Option[Array[Double]] = trust.trusted(costs.relative)

  /**
   * The same knowledge for another layout. A shard that begins empty inherits the values of the shard that its keys
   * were in. The row cost of a shard that keys have left is unknown.
   */
  def in(other: Layout): KnownRegion =
    if (other == layout) this
    else {
      val from = other.inherited(layout)
      val shardsThatLostKeys = other.moves(layout).map(_.from).toSet
      val costsFrom = from.zipWithIndex.map { case (f, s) =>
        if (f == s && shardsThatLostKeys(s)) RowCosts.Unknown else f
      }
      copy(other, from.map(taskOf), load = from.map(load), costs = costs.of(costsFrom), trust = trust.of(costsFrom))
    }
}
