package org.apache.spark.sql.penstock.telemetry

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.metrics.source.Source
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.report.ReportRows
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.sql.types.{NumericType, StructType}

import com.codahale.metrics.{Gauge, MetricRegistry}
import io.penstock.context.Component

/**
 * Publishes the report of a query's newest batch on regions, operators and stores to Spark's metrics system. Each
 * active run has a source `penstock.<name or id>`. If another run has the same name, the run's id is appended. The
 * source has a gauge for each number: `region<id>.<field>`, `operator<id>.<field>` and
 * `store<operator>.<name>.<field>`. Docs: `docs/progress.md`.
 */
final class QueryMetrics(sc: SparkContext) extends SparkListener with Component {
  private val running = mutable.Map.empty[UUID, QueryMetrics.RunSource]
  private var closed = false

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: QueryProgressEvent => QueryMetrics.parts(e.progress).foreach(show(e.progress, _))
    case e: QueryTerminatedEvent => synchronized(running.remove(e.runId).foreach(forget))
    case _ =>
  }

  override def held: Map[String, Long] = Map("sources" -> synchronized(running.size.toLong))

  /** Removes all sources. */
  override def close(): Unit = {
    sc.removeSparkListener(this)
    synchronized {
      closed = true
      running.values.foreach(sc.env.metricsSystem.removeSource)
      running.clear()
    }
  }

  private def show(progress: StreamingQueryProgress, parts: Map[String, Row]): Unit = synchronized {
    running.get(progress.runId) match {
      case Some(source) => source.newest = parts
      case None if closed =>
      case None =>
        val source = new QueryMetrics.RunSource(nameOf(progress), parts)
        running(progress.runId) = source
        sc.env.metricsSystem.registerSource(source)
    }
  }

  private def forget(ended: QueryMetrics.RunSource): Unit = {
    val system = sc.env.metricsSystem
    system.removeSource(ended)
    // Spark removes all gauges whose names begin with the source's name. Register the affected sources again.
    running.values.filter(_.sourceName.startsWith(ended.sourceName)).toSeq.sortBy(_.sourceName).foreach { source =>
      system.removeSource(source)
      system.registerSource(source)
    }
  }

  /**
   * Name of a run's source. Queries of several sessions may have the same name, so all but the first get their run's id
   * appended.
   */
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

    // NaN and not null for a missing value, because Spark would write the word `null` to Prometheus.
    private def gauge(part: String, field: String): Gauge[Double] = () =>
      newest.get(part).flatMap(row => Option(row.getAs[Number](field))).fold(Double.NaN)(_.doubleValue)
  }

  private def numbers(schema: StructType): Seq[String] =
    schema.filter(f => f.dataType.isInstanceOf[NumericType] && !idOf(f.name)).map(_.name)

  /**
   * Rows of the report for the regions, operators and stores of a batch, by the names of their gauges; None without
   * regions.
   */
  private def parts(progress: StreamingQueryProgress): Option[Map[String, Row]] =
    ReportRows.of(progress).filter(ReportRows.regions(_).nonEmpty).map { report =>
      ReportRows.regions(report).map(r => s"region${r.getAs[Long]("region")}" -> r).toMap ++
        ReportRows.operators(report).map(o => s"operator${o.getAs[Long]("operator")}" -> o) ++
        ReportRows.stores(report).map(s => s"store${s.getAs[Long]("operator")}.${s.getAs[String]("store")}" -> s)
    }
}
