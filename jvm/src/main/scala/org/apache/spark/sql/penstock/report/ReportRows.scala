package org.apache.spark.sql.penstock.report

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.StreamingQueryProgress

/** Reads the record that [[ReportSchema]] describes. */
object ReportRows {

  /** The report of a batch; None if no batch was run or it has no report. */
  def of(progress: StreamingQueryProgress): Option[Row] =
    ReportName.latest(progress.observedMetrics.keySet().asScala)
      .map(progress.observedMetrics.get(_))
      .filter(row => progress.durationMs.containsKey("addBatch") && row.schema == ReportSchema.report)

  /** Rows of a report for the regions, in the order of the plan. */
  def regions(report: Row): Seq[Row] = report.getAs[scala.collection.Seq[Row]]("regions").toSeq

  /** Rows of a report for the operators. */
  def operators(report: Row): Seq[Row] = report.getAs[scala.collection.Seq[Row]]("operators").toSeq

  /** Rows of a report for the state stores. */
  def stores(report: Row): Seq[Row] = report.getAs[scala.collection.Seq[Row]]("stores").toSeq
}
