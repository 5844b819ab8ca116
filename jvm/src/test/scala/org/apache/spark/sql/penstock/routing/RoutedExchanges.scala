package org.apache.spark.sql.penstock.routing

import java.util.UUID

import scala.collection.immutable.SortedMap

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.telemetry.RegionLoad

import io.penstock.conf.Mode
import io.penstock.routing._
import io.penstock.sharding.Layout
import org.scalatest.funsuite.AnyFunSuite

/** Runs batch plans whose exchanges are routed. */
abstract class RoutedExchanges extends AnyFunSuite with LocalSpark {
  override protected def conf: Map[String, String] = Map("spark.sql.adaptive.enabled" -> "false")
  protected val shards = 32

  protected def routing(
      tasks: Int,
      binder: Binder,
      region: Long = 0,
      observe: Boolean = false,
      previous: Option[Array[Int]] = None,
      state: NoState = new NoState
  ): RegionRouting = {
    val spec = RegionSpec(region, single = false, Seq(OperatorLease(region, OperatorKind.WholeKey, Seq("default"))))
    val batch = BatchSpec(new UUID(1, 2), "nowhere", 7, shards, Seq(spec))
    val lease = state.open(spark, batch)(Map.empty)(region)
    val load = new RegionLoad(Layout(shards), Seq(region), tasks, reportKeys = true, countsAll = false, _ => ())
    spark.sparkContext.register(load)
    val mode = if (observe) Mode.Observe else Mode.On
    new BatchRouting(
      batch,
      mode,
      1.05,
      foreseen = true,
      RoutingVersion(3, 0, shards, SortedMap(region -> tasks)),
      () => StateReport.Empty,
      b =>
        Seq(
          new RegionRouting(
            b,
            spec,
            Seq("agg"),
            None,
            None,
            lease,
            state,
            new RegionBarrier(shards, tasks, binder, previous, None, observe),
            load,
            PlanReasons(),
            IndexedSeq.empty,
            Limited.Never,
            hash => (hash.toString, false)
          )
        )
    ).region(region)
  }

  protected def partitioning(keys: HashPartitioning, r: RegionRouting, tasks: Int) = new ShardPartitioning(
    keys.expressions,
    new RegionPlan(
      r.batch.spec.runId,
      r.batch.spec.batchId,
      r.spec.region,
      tasks,
      r.lease.layout,
      r.batch.routingVersion.number,
      byShard = false,
      r
    ),
    r.spec.region
  )

  /** The plan of `df` with routed exchanges. */
  protected def routed(df: DataFrame, r: RegionRouting, tasks: Int): SparkPlan =
    df.queryExecution.executedPlan.transform {
      case e: ShuffleExchangeExec => RoutedExchange(
          e,
          partitioning(e.outputPartitioning.asInstanceOf[HashPartitioning], r, tasks)
        )
    }

  protected def input(rows: Int, maps: Int): DataFrame =
    spark.range(0, rows, 1, maps).selectExpr("id % 97 as k", "cast(id as string) as v").repartition(shards, column("k"))

  protected def column(name: String) = org.apache.spark.sql.functions.col(name)

  /** Rows with the number of their task. */
  protected def run(plan: SparkPlan): Seq[(Int, Long, String)] =
    plan.execute().mapPartitionsWithIndex((p, it) => it.map(r => (p, r.getLong(0), r.getString(1)))).collect().toSeq

  protected def check(rows: Int, maps: Int, tasks: Int, binder: Binder): Decision = {
    val df = input(rows, maps)
    val r = routing(tasks, binder)
    val out = run(routed(df, r, tasks))
    val expected = df.collect().map(x => (x.getLong(0), x.getString(1))).toSeq
    assert(out.map(x => (x._2, x._3)).sorted == expected.sorted)
    val decision = r.barrier.decision.get
    assert(decision.incomplete == 0 && decision.rows.sum == rows)
    // The partition of Spark's exchange is the shard, and the routed task is the bound one.
    val shardOf = df.rdd.mapPartitionsWithIndex((p, it) => it.map(x => x.getLong(0) -> p)).distinct().collect().toMap
    out.foreach { case (task, k, _) => assert(decision.binding.taskOf(shardOf(k)) == task) }
    decision
  }
}
