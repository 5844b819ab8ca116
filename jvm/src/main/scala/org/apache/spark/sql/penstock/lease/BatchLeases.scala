package org.apache.spark.sql.penstock.lease

import org.apache.spark.sql.SparkSession

import io.penstock.sharding.Layout
import io.penstock.state.format.StoreKey
import io.penstock.telemetry.{MovedState, StateLoad}

/** Driver side of the leases: what planning a batch asks of the state layer. */
trait BatchLeases {

  /**
   * Opens the batch for commits and returns one lease per region, keyed by region. Idempotent per (run, batch).
   *
   * @param layouts
   *   layout of each region's state in the batch. Evaluated only when a new batch is opened, after the checkpoint has
   *   been verified. If the batch is already open, its leases keep their layouts
   * @throws io.penstock.errors.PenstockException
   *   if the checkpoint cannot be continued: the state of the previous batch is missing or incomplete, the number of
   *   shards differs, or the format is newer
   */
  def open(session: SparkSession, batch: BatchSpec)(layouts: => Map[Long, Layout]): Map[Long, RegionLease]

  /**
   * Brings shards of a region to executors while the open batch begins. Tasks bring the shards that do not arrive in
   * time themselves. Returns at once.
   *
   * @param to
   *   shards, most important first, each with the executor that is to receive it (a task location)
   */
  def bring(runId: java.util.UUID, region: Long, to: Seq[(Int, String)]): Unit

  /** Like `bring`, but the executors receive replicas: the owners of the shards do not change. */
  def copy(runId: java.util.UUID, region: Long, to: Seq[(Int, String)]): Unit

  /** Executor that holds a replica of each shard of a region; null, or no entry, if there is none. */
  def replicas(runId: java.util.UUID, region: Long): Array[String]

  /** Executor (`ExecutorCacheTaskLocation` string) that last committed each shard of a region; null if unknown. */
  def owners(runId: java.util.UUID, region: Long): Array[String]

  /** Newest load of each shard that tasks reported, for each store of a region; empty for an unknown run. */
  def stateLoads(runId: java.util.UUID, region: Long): Map[StoreKey, StateLoad]

  /** State of a region that the newest batch had to move to where its tasks run; None for an unknown run. */
  def moved(runId: java.util.UUID, region: Long): Option[MovedState]

  /** Report on the state of a run after its newest batch; empty for an unknown run. */
  def report(runId: java.util.UUID): StateReport
}
