package io.penstock.metrics

import org.apache.spark.sql.penstock.report.ReportSchema
import org.apache.spark.sql.types.StructType

/** Renders the fields of a batch's report to `docs/progress.md`. */
object ProgressPage {
  private val intro =
    """# What a batch reports
      |
      |<!-- Generated from org.apache.spark.sql.penstock.report.ReportSchema by `make docs`: do not edit. -->
      |
      |Penstock adds one entry to the progress of every stateful query: `query.lastProgress.observedMetrics["penstock"]`, and
      |the same in every `StreamingQueryListener`. A field that does not apply is null. If a query has its own metric with
      |that name (`df.observe("penstock", ...)`), the report is named `penstock#1`, and so on: it is always the one with the
      |highest number. `penstock.status` and `penstock.decisions` find it.
      |
      |Busy time is measured: the time from a row to the next one is charged to the row's shard and key, for a sample of rows
      |that keeps the cost of measuring near 1 % of a task. For rows that are handed to another thread or process, as by
      |Python operators, only the time of handing them over is charged. Failed attempts do not count.
      |
      |While a query runs, the numbers of its regions, operators and stores for the newest batch are also in Spark's metrics
      |system: `driver.penstock.<name of the query, or its id>.region<region>.<field>`, `….operator<operator>.<field>` and
      |`….store<operator>.<store>.<field>`.
      |If several running queries have the same name, all but the first also have the id of their run after the name.
      |""".stripMargin

  def markdown: String = Seq(
    intro,
    table("penstock", ReportSchema.report),
    table("penstock.regions[]", ReportSchema.region),
    table("penstock.regions[].heavyKeys[]", ReportSchema.key),
    table("penstock.regions[].pinnedKeys[]", ReportSchema.pinned),
    table("penstock.operators[]", ReportSchema.operator),
    table("penstock.stores[]", ReportSchema.store),
    table("penstock.state", ReportSchema.run)
  ).mkString("\n")

  private def table(name: String, fields: StructType): String = {
    val rows = fields.map(f => s"| `${f.name}` | ${f.dataType.typeName} | ${f.getComment().get} |")
    (Seq(s"## `$name`", "", "| field | type | meaning |", "|---|---|---|") ++ rows).mkString("", "\n", "\n")
  }
}
