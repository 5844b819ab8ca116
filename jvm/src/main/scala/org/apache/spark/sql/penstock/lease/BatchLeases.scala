package org.apache.spark.sql.penstock.lease

import org.apache.spark.sql.SparkSession

import io.penstock.sharding.Layout
import io.penstock.state.format.StoreKey
import io.penstock.telemetry.{MovedState, StateLoad}

/** Driver side of the leases: what the state layer tells the planner. */
trait BatchLeases {

  /**
   * Opens the batch for commits and returns one lease per region, keyed by region. Idempotent per (run, batch).
   *
   * @param layouts
   *   how the state of each region is to be laid out in the batch. Asked for when the checkpoint is known to be one that
   *   can be continued, and not where the batch is open: leases tell what holds
   * @throws io.penstock.errors.PenstockException
   *   where the checkpoint cannot be continued: state of the previous batch missing or incomplete, another number of
   *   shards, a newer format
   */
  def open(session: SparkSession, batch: BatchSpec)(layouts: => Map[Long, Layout]): Map[Long, RegionLease]

  /**
   * Brings shards of a region to executors while the batch that is open begins. What does not come in time is brought by
   * the tasks that need it. Returns at once.
   *
   * @param to
   *   shards in the order in which they matter, each with its executor as a task location
   */
  def bring(runId: java.util.UUID, region: Long, to: Seq[(Int, String)]): Unit

  /** The same for a second copy: their owners stay what they are. */
  def copy(runId: java.util.UUID, region: Long, to: Seq[(Int, String)]): Unit

  /** Executor that has a second copy of each shard of a region; null, or no entry, where none has. */
  def replicas(runId: java.util.UUID, region: Long): Array[String]

  /** Executor (`ExecutorCacheTaskLocation` string) that last committed each shard of a region; null where unknown. */
  def owners(runId: java.util.UUID, region: Long): Array[String]

  /** What the state of each shard of a region's stores amounts to, as tasks told it last; empty for an unknown run. */
  def stateLoads(runId: java.util.UUID, region: Long): Map[StoreKey, StateLoad]

  /** State of a region that the newest batch had to bring to where its tasks run; None for an unknown run. */
  def moved(runId: java.util.UUID, region: Long): Option[MovedState]

  /** What there is to tell of a run's state, after its newest batch. */
  def report(runId: java.util.UUID): StateReport
}
