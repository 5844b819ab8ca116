package org.apache.spark.sql.penstock.components

import org.apache.spark.SparkContext
import org.apache.spark.sql.penstock.commit.StateCommits
import org.apache.spark.sql.penstock.executors.{ExecutorOrders, ExecutorScaling, LatencyTargets}
import org.apache.spark.sql.penstock.routing.SessionRoutings
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.penstock.state.ManifestCache
import org.apache.spark.sql.penstock.telemetry.QueryMetrics

import io.penstock.context.{DriverContext, ProcessContext}
import io.penstock.control.Planner

/** What a driver's context consists of. */
object DriverComponents {

  /**
   * Starts the driver's context. Components are created before those that use them, and closed after them.
   *
   * @param planner
   *   makes plans; None without a planner
   */
  def start(planner: Option[Planner]): ProcessContext = {
    val context = DriverContext.start()
    planner.foreach(context.own(Planner, _))
    Seq(ManifestCache, ShardHash).foreach(context.own(_))
    val orders = context.own(ExecutorOrders, new ExecutorOrders)
    context.own(LatencyTargets, new LatencyTargets)
    val commits = context.own(StateCommits, new StateCommits(orders))
    context.own(SessionRoutings, new SessionRoutings(commits.leases))
    context
  }

  /** Adds what publishes the reports of queries to Spark's metrics system. */
  def publish(context: ProcessContext, sc: SparkContext): Unit =
    sc.addSparkListener(context.own(new QueryMetrics(sc)))

  /** Adds what requests and releases executors. Parameters as those of [[ExecutorScaling]]. */
  def scale(context: ProcessContext, sc: SparkContext, minExecutors: Int, maxExecutors: Int): Unit =
    sc.addSparkListener(
      context.own(new ExecutorScaling(sc, minExecutors, maxExecutors, LatencyTargets.current, Planner.current))
    )
}
