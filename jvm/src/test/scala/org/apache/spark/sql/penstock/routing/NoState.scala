package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.penstock.lease._

import io.penstock.sharding.Layout
import io.penstock.state.format.StoreKey
import io.penstock.telemetry.{MovedState, StateLoad}

/** A state layer without state: every region starts empty. Records what it is asked for. */
final class NoState extends BatchLeases {
  @volatile var opened: Vector[BatchSpec] = Vector.empty
  @volatile var executors: Array[String] = _

  override def open(session: SparkSession, batch: BatchSpec)(
      layouts: => Map[Long, Layout]
  ): Map[Long, RegionLease] = synchronized {
    opened :+= batch
    batch.regions.map { r =>
      r.region -> RegionLease(
        batch.runId,
        batch.stateRoot,
        batch.batchId,
        layouts.getOrElse(r.region, Layout(batch.shardCount)),
        r,
        BaseState(-1, Map.empty)
      )
    }.toMap
  }

  override def bring(runId: UUID, region: Long, to: Seq[(Int, String)]): Unit = ()

  override def copy(runId: UUID, region: Long, to: Seq[(Int, String)]): Unit = ()

  override def replicas(runId: UUID, region: Long): Array[String] = Array.empty

  override def owners(runId: UUID, region: Long): Array[String] = executors

  override def stateLoads(runId: UUID, region: Long): Map[StoreKey, StateLoad] = Map.empty

  override def moved(runId: UUID, region: Long): Option[MovedState] = None

  override def report(runId: UUID): StateReport = StateReport.Empty
}
