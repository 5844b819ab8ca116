package io.penstock.metrics

import MetricOutput._

/** Renders the registry of metrics to `docs/metrics.md`. */
object MetricsPage {
  private val intro =
    """# Metrics of state
      |
      |<!-- Generated from io.penstock.metrics.Metrics by `make docs`: do not edit. -->
      |
      |A batch's progress (`query.lastProgress`, `StreamingQueryListener`) shows metrics at three outputs, and Spark's
      |metrics system shows them at two. The column *outputs* of the second table names them:
      |
      || output | where | scope |
      ||---|---|---|
      || operator | progress, `stateOperators[].customMetrics` | the batch, summed over an operator's tasks and stores |
      || store | progress, `observedMetrics["penstock"].stores[]` | one store's checkpoint, after the batch |
      || run | progress, `observedMetrics["penstock"].state` | the query since it was started |
      || executor | metrics system of an executor | all queries |
      || driver | metrics system of the driver | all queries |
      |
      |In `observedMetrics["penstock"]` the names have no prefix `penstock`, as in `snapshotLagBytes`. In the metrics system
      |they follow `plugin.io.penstock.PenstockPlugin.`. Metrics that *grow* count from the start of the JVM, all others are
      |current values. Spark's own fields are `numRowsTotal` (keys), `memoryUsedBytes` (heap of the shards of the batch's
      |tasks) and `commitTimeMs`. [progress.md](progress.md) describes the other fields of `observedMetrics["penstock"]`.
      |""".stripMargin

  def markdown: String = {
    val header = "| metric | unit | outputs | grows | meaning |\n|---|---|---|---|---|"
    (Seq(intro, header) ++ Metrics.all.map(row)).mkString("", "\n", "\n")
  }

  private def row(m: Metric): String = {
    val outputs = Seq(Operator, Store, Run, Executor, Driver).filter(m.outputs).map(_.inWords).mkString(", ")
    s"| `${m.name}` | ${m.unit.inWords} | $outputs | ${if (m.grows) "yes" else "no"} | ${m.meaning} |"
  }
}
