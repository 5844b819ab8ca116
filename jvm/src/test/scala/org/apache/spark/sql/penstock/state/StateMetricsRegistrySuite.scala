package org.apache.spark.sql.penstock.state

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.penstock.commit.{DriverMetrics, StateCommits}
import org.apache.spark.sql.penstock.executors.ExecutorOrders

import com.codahale.metrics.MetricRegistry
import io.penstock.metrics.{Metric, MetricOutput, MetricUnit, Metrics}
import io.penstock.state.format.{SnapshotLag, StoreKey}
import io.penstock.state.memory.MemoryBound
import io.penstock.telemetry.{RunActivity, StateLoad, StoreActivity, StoreContent, StoreTimings}
import org.scalatest.funsuite.AnyFunSuite

/** The metrics system contains exactly the metrics of the registry. */
class StateMetricsRegistrySuite extends AnyFunSuite {
  private val metrics = new ExecutorMetrics(new ShardStores, MemoryBound.none)
  private val commits = new StateCommits(new ExecutorOrders)

  private def registered(register: MetricRegistry => Unit): MetricRegistry = {
    val registry = new MetricRegistry
    register(registry)
    registry
  }

  for (
    (output, register) <- Seq[(MetricOutput, MetricRegistry => Unit)](
      MetricOutput.Executor -> (metrics.register(_)),
      MetricOutput.Driver -> (DriverMetrics.register(_, commits))
    )
  ) test(s"${output.inWords}: every metric is registered, as a counter if it only grows, else as a gauge") {
    val registry = registered(register)
    val (counters, gauges) = Metrics.at(output).partition(_.grows)
    assert(registry.getCounters.keySet.asScala == counters.map(_.name).toSet)
    assert(registry.getGauges.keySet.asScala == gauges.map(_.name).toSet)
    assert(registry.getMetrics.size == Metrics.at(output).size)
    registry.getGauges.values.asScala.foreach(g => assert(g.getValue.asInstanceOf[Long] >= 0L))
  }

  test("every metric of an output has a value there, in the order of the report") {
    val lag = SnapshotLag(StoreKey(0L, "default"), ageBatches = 1L, changes = 2L, bytes = 3L)
    val store = StoreContent(lag, StateLoad(Array(1L, 2L), Array(3L, 4L), Array(5L, 6L)))
    assert(Metrics.read(MetricOutput.Store, store).map(_._1) == Metrics.at(MetricOutput.Store))
    assert(Metrics.read(MetricOutput.Store, store).map(_._2).sorted == Seq(1L, 2L, 3L, 3L, 7L, 11L))
    val run = Metrics.read(MetricOutput.Run, RunActivity(1L, 2L, 3L, 4L))
    assert(run.map(_._1) == Metrics.at(MetricOutput.Run) && run.map(_._2) == Seq(1L, 2L, 3L, 4L))
    val opened = new StoreTimings
    opened.foldNs = 7000000L
    val task = Metrics.read(MetricOutput.Operator, StoreActivity(1L, opened, 2000000L, 3L, 4L)).toMap
    assert(task.keySet == Metrics.at(MetricOutput.Operator).toSet)
    assert(task(Metrics.FoldTime) == 7L && task(Metrics.CommitTime) == 2L && task(Metrics.InternalKeys) == 1L)
    // A metric of such an output cannot be declared without a function that reads it.
    assertDoesNotCompile("Metric(\"m\", MetricUnit.Count, grows = false, Seq(MetricOutput.Store), \"a metric\")")
    assertCompiles(
      "Metric(\"m\", MetricUnit.Count, grows = false, Seq(MetricOutput.Store(_.load.keys.sum)), \"a metric\")"
    )
  }

  test("no metric belongs to both executor and driver, which share a metrics system in local mode") {
    assert(Metrics.all.forall(m => !(m.outputs(MetricOutput.Executor) && m.outputs(MetricOutput.Driver))))
    assert(Metrics.all.forall(_.outputs.nonEmpty))
  }

  test("times below a millisecond add up") {
    val registry = registered(metrics.register(_))
    val commitTime = registry.counter(Metrics.CommitTime.name)
    val before = commitTime.getCount
    (0 until 10).foreach(_ => metrics.committed(0L, 500000L))
    assert(commitTime.getCount - before == 5L)
  }
}
