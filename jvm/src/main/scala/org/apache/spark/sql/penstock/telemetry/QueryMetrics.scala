package org.apache.spark.sql.penstock.telemetry

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.metrics.source.Source
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.routing.{ReportSchema, RoutingReportExec}
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.sql.types.NumericType

import com.codahale.metrics.{Gauge, MetricRegistry}

/**
 * What a query's newest batch reports of its regions, for Spark's metrics system: a source for each run while it runs,
 * `penstock.<name or id>`, with a gauge for each number, `region<id>.<field>`. Docs: `docs/progress.md`.
 */
final class QueryMetrics(sc: SparkContext) extends SparkListener {
  private val running = mutable.Map.empty[UUID, QueryMetrics.RunSource]

  /** Spark calls it from one thread. */
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: QueryProgressEvent => QueryMetrics.regions(e.progress).foreach(show(e.progress, _))
    case e: QueryTerminatedEvent => running.remove(e.runId).foreach(sc.env.metricsSystem.removeSource)
    case _ =>
  }

  private def show(progress: StreamingQueryProgress, regions: Map[Long, Row]): Unit =
    running.get(progress.runId) match {
      case Some(source) => source.newest = regions
      case None =>
        val name = Option(progress.name).getOrElse(progress.id.toString)
        val source = new QueryMetrics.RunSource(s"penstock.$name", regions)
        running(progress.runId) = source
        sc.env.metricsSystem.registerSource(source)
    }
}

object QueryMetrics {

  /** Fields of a region that are numbers. */
  val Fields: Seq[String] =
    ReportSchema.region.filter(f => f.dataType.isInstanceOf[NumericType] && f.name != "region").map(_.name)

  private class RunSource(override val sourceName: String, first: Map[Long, Row]) extends Source {
    @volatile var newest: Map[Long, Row] = first
    override val metricRegistry: MetricRegistry = new MetricRegistry

    for (region <- first.keys.toSeq.sorted; field <- Fields)
      metricRegistry.register(MetricRegistry.name(s"region$region", field), gauge(region, field))

    // Not null where there is nothing to tell: Spark would write that word to Prometheus.
    private def gauge(region: Long, field: String): Gauge[Double] = () =>
      newest.get(region).flatMap(row => Option(row.getAs[Number](field))).fold(Double.NaN)(_.doubleValue)
  }

  private def regions(progress: StreamingQueryProgress): Option[Map[Long, Row]] =
    RoutingReportExec.of(progress)
      .map(RoutingReportExec.regions(_).map(r => r.getAs[Long]("region") -> r).toMap)
      .filter(_.nonEmpty)
}
