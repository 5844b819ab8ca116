package org.apache.spark.sql.penstock.lease

import org.apache.spark.sql.SparkSession

/** Driver side of the leases: what the state layer tells the planner. */
trait BatchLeases {

  /**
   * Opens the batch for commits and returns one lease per region, keyed by region. Idempotent per (run, batch).
   *
   * @throws io.penstock.errors.PenstockException
   *   where the checkpoint cannot be continued: state of the previous batch missing or incomplete, another number of
   *   shards, a newer format
   */
  def open(session: SparkSession, batch: BatchSpec): Map[Long, RegionLease]

  /** Executor (`ExecutorCacheTaskLocation` string) that last committed each shard of a region; null where unknown. */
  def owners(runId: java.util.UUID, region: Long): Array[String]

  /** Memory that the state of each shard of a region takes, as tasks told it last; empty for an unknown run. */
  def stateBytes(runId: java.util.UUID, region: Long): Array[Long]

  /** What there is to tell of a run's state, after its newest batch. */
  def report(runId: java.util.UUID): StateReport
}
