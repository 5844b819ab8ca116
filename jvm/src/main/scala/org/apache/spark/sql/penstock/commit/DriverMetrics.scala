package org.apache.spark.sql.penstock.commit

import com.codahale.metrics.{Counter, Gauge, MetricRegistry}
import io.penstock.metrics.{Metric, Metrics}
import io.penstock.state.format.SnapshotLag

/** Metrics of the state of all queries on this driver, for Spark's metrics system. */
object DriverMetrics {
  private val filesDeleted = new Counter

  private val all: Seq[(Metric, com.codahale.metrics.Metric)] = Seq(
    Metrics.SnapshotAge -> gauge(lags => if (lags.isEmpty) 0L else lags.map(_.ageBatches).max),
    Metrics.SnapshotLagChanges -> gauge(_.map(_.changes).sum),
    Metrics.SnapshotLagBytes -> gauge(_.map(_.bytes).sum),
    Metrics.FilesDeleted -> filesDeleted
  )

  def register(registry: MetricRegistry): Unit = all.foreach { case (m, value) => registry.register(m.name, value) }

  /** Counts files of a checkpoint that were deleted. */
  def deleted(files: Int): Unit = filesDeleted.inc(files.toLong)

  private def gauge(summary: Seq[SnapshotLag] => Long): Gauge[Long] =
    () => summary(StateCommits.reports.flatMap(_.lags))
}
