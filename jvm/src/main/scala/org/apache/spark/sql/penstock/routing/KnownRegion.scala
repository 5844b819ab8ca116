package org.apache.spark.sql.penstock.routing

import io.penstock.routing.{DeadBand, Limited, MoveCost}
import io.penstock.sharding.Layout
import io.penstock.telemetry.{CostTrust, RowCosts}

/**
 * What a run has learnt of a region by the end of a batch.
 *
 * @param layout
 *   of the batch
 * @param taskOf
 *   task of each of its shards, as the binder chose
 * @param executorOf
 *   executor that each task was meant for; empty where that was left open
 * @param load
 *   of each shard
 * @param msPerLoad
 *   what a unit of load took; 0 where nothing was measured
 * @param rowDeviation
 *   standard deviation of the time of rows of one shard, over its mean
 * @param costs
 *   of their rows
 * @param trust
 *   whether these foretell
 * @param move
 *   what it takes to bring a shard from one executor's memory to another's
 * @param sampledHashes
 *   hashes of the keys that tasks have sampled most of, in the newest batch that had any
 * @param limited
 *   by what the batches were that are the newest
 * @param timesTellLittle
 *   whether most of its time could be charged to no row
 * @param batches
 *   of the run so far
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

  /** What the next batch leaves alone. */
  def deadBand: DeadBand = DeadBand(rowDeviation, msPerLoad)

  /** Cost of a row of each shard over the typical row's, as far as it foretells; None where rows are taken to cost the same. */
  def trustedCosts: Option[Array[Double]] = trust.trusted(costs.relative)

  /**
   * The same in the terms of another layout: where shards begin empty, they take what their keys had; what rows cost in a
   * shard that keys have left is not known.
   */
  def in(other: Layout): KnownRegion =
    if (other == layout) this
    else {
      val from = other.inherited(layout)
      val left = other.moves(layout).map(_.from).toSet
      val costsFrom = from.zipWithIndex.map { case (f, s) => if (f == s && left(s)) RowCosts.Unknown else f }
      copy(other, from.map(taskOf), load = from.map(load), costs = costs.of(costsFrom), trust = trust.of(costsFrom))
    }
}
