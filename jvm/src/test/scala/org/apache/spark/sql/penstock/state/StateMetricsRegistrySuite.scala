package org.apache.spark.sql.penstock.state

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.penstock.commit.DriverMetrics

import com.codahale.metrics.MetricRegistry
import io.penstock.metrics.{Metrics, Place}
import org.scalatest.funsuite.AnyFunSuite

/** What is registered with the metrics system is what the registry of metrics says. */
class StateMetricsRegistrySuite extends AnyFunSuite {
  private def registered(register: MetricRegistry => Unit): MetricRegistry = {
    val registry = new MetricRegistry
    register(registry)
    registry
  }

  for (
    (place, register) <- Seq[(Place, MetricRegistry => Unit)](
      Place.Executor -> (ExecutorMetrics.register(_)),
      Place.Driver -> (DriverMetrics.register(_))
    )
  ) test(s"${place.inWords}: every metric, as a counter where it only grows, else as a gauge") {
    val registry = registered(register)
    val (counters, gauges) = Metrics.at(place).partition(_.grows)
    assert(registry.getCounters.keySet.asScala == counters.map(_.name).toSet)
    assert(registry.getGauges.keySet.asScala == gauges.map(_.name).toSet)
    assert(registry.getMetrics.size == Metrics.at(place).size)
    registry.getGauges.values.asScala.foreach(g => assert(g.getValue.asInstanceOf[Long] >= 0L))
  }

  test("no metric is of the executor and of the driver: in local mode both are in one metrics system") {
    assert(Metrics.all.forall(m => !(m.places(Place.Executor) && m.places(Place.Driver))))
    assert(Metrics.all.forall(_.places.nonEmpty))
  }

  test("short times add up") {
    val registry = registered(ExecutorMetrics.register(_))
    val commitTime = registry.counter(Metrics.CommitTime.name)
    val before = commitTime.getCount
    (0 until 10).foreach(_ => ExecutorMetrics.committed(0L, 500000L))
    assert(commitTime.getCount - before == 5L)
  }
}
