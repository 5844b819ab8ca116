package io.penstock.metrics

import MetricOutput._

/** Renders the registry of metrics to `docs/metrics.md`. */
object MetricsPage {
  private val intro =
    """# Metrics of state
      |
      |<!-- Generated from io.penstock.metrics.Metrics by `make docs`: do not edit. -->
      |
      |A batch's progress (`query.lastProgress`, `StreamingQueryListener`) shows them at three outputs, Spark's metrics system
      |at two. The columns name them:
      |
      || output | where | of what |
      ||---|---|---|
      || operator | progress, `stateOperators[].customMetrics` | the batch, added up over an operator's tasks and stores |
      || store | progress, `observedMetrics["penstock"].stores[]` | one store's checkpoint, after the batch |
      || run | progress, `observedMetrics["penstock"].state` | the query since it was started |
      || executor | metrics system of an executor | all queries |
      || driver | metrics system of the driver | all queries |
      |
      |In `observedMetrics["penstock"]` names go without `penstock`: `snapshotLagBytes`. In the metrics system they follow
      |`plugin.io.penstock.PenstockPlugin.`; what *grows* counts from the start of the JVM, everything else is as it is now.
      |Spark's own fields beside them: `numRowsTotal` (keys), `memoryUsedBytes` (heap of the shards of the batch's tasks),
      |`commitTimeMs`. What else is in `observedMetrics["penstock"]` is in [progress.md](progress.md).
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
