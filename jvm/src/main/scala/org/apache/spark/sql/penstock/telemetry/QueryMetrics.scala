package org.apache.spark.sql.penstock.telemetry

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.metrics.source.Source
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.routing.RoutingReportExec
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.sql.types.{NumericType, StructType}

import com.codahale.metrics.{Gauge, MetricRegistry}

/**
 * What a query's newest batch reports of its regions, operators and stores, for Spark's metrics system: a source for each
 * run while it runs, `penstock.<name or id>`, and behind that the run's id where another one has the name, with a gauge for
 * each number, `region<id>.<field>`, `operator<id>.<field>` and `store<operator>.<name>.<field>`. Docs: `docs/progress.md`.
 */
final class QueryMetrics(sc: SparkContext) extends SparkListener {
  private val running = mutable.Map.empty[UUID, QueryMetrics.RunSource]

  /** Spark calls it from one thread. */
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: QueryProgressEvent => QueryMetrics.parts(e.progress).foreach(show(e.progress, _))
    case e: QueryTerminatedEvent => running.remove(e.runId).foreach(forget)
    case _ =>
  }

  private def show(progress: StreamingQueryProgress, parts: Map[String, Row]): Unit =
    running.get(progress.runId) match {
      case Some(source) => source.newest = parts
      case None =>
        val source = new QueryMetrics.RunSource(nameOf(progress), parts)
        running(progress.runId) = source
        sc.env.metricsSystem.registerSource(source)
    }

  private def forget(ended: QueryMetrics.RunSource): Unit = {
    val system = sc.env.metricsSystem
    system.removeSource(ended)
    // Spark has removed all whose names begin like that.
    running.values.filter(_.sourceName.startsWith(ended.sourceName)).toSeq.sortBy(_.sourceName).foreach { source =>
      system.removeSource(source)
      system.registerSource(source)
    }
  }

  /** Queries of several sessions may have the same name: all but the first that runs have their run's id behind it. */
  private def nameOf(progress: StreamingQueryProgress): String = {
    val name = s"penstock.${Option(progress.name).getOrElse(progress.id.toString)}"
    if (running.values.exists(_.sourceName == name)) s"$name.${progress.runId}" else name
  }
}

object QueryMetrics {
  private val idOf = Set("region", "operator")

  private class RunSource(override val sourceName: String, first: Map[String, Row]) extends Source {
    @volatile var newest: Map[String, Row] = first
    override val metricRegistry: MetricRegistry = new MetricRegistry

    for ((part, row) <- first.toSeq.sortBy(_._1); field <- numbers(row.schema))
      metricRegistry.register(MetricRegistry.name(part, field), gauge(part, field))

    // Not null where there is nothing to tell: Spark would write that word to Prometheus.
    private def gauge(part: String, field: String): Gauge[Double] = () =>
      newest.get(part).flatMap(row => Option(row.getAs[Number](field))).fold(Double.NaN)(_.doubleValue)
  }

  private def numbers(schema: StructType): Seq[String] =
    schema.filter(f => f.dataType.isInstanceOf[NumericType] && !idOf(f.name)).map(_.name)

  /** Of a batch with regions, these, their operators and stores, each by its name. */
  private def parts(progress: StreamingQueryProgress): Option[Map[String, Row]] =
    RoutingReportExec.of(progress).filter(RoutingReportExec.regions(_).nonEmpty).map { report =>
      RoutingReportExec.regions(report).map(r => s"region${r.getAs[Long]("region")}" -> r).toMap ++
        RoutingReportExec.operators(report).map(o => s"operator${o.getAs[Long]("operator")}" -> o) ++
        RoutingReportExec.stores(report).map(s => s"store${s.getAs[Long]("operator")}.${s.getAs[String]("store")}" -> s)
    }
}
