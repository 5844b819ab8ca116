package org.apache.spark.sql.penstock.commit

import com.codahale.metrics.{Gauge, MetricRegistry}
import io.penstock.metrics.Metrics
import io.penstock.state.format.SnapshotLag

/** Metrics of the state of all queries on this driver, for Spark's metrics system. */
object DriverMetrics {

  /** Registers the metrics of an application. */
  def register(registry: MetricRegistry, commits: StateCommits): Unit = {
    def gauge(summary: Seq[SnapshotLag] => Long): Gauge[Long] = () => summary(commits.reports.flatMap(_.lags))
    Seq(
      Metrics.SnapshotAge -> gauge(lags => if (lags.isEmpty) 0L else lags.map(_.ageBatches).max),
      Metrics.SnapshotLagChanges -> gauge(_.map(_.changes).sum),
      Metrics.SnapshotLagBytes -> gauge(_.map(_.bytes).sum),
      Metrics.FilesDeleted -> commits.filesDeleted
    ).foreach { case (m, value) => registry.register(m.name, value) }
  }
}
