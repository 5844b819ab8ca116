package org.apache.spark.sql.penstock.report

import org.apache.spark.sql.execution.{CollectMetricsExec, SparkPlan}

/**
 * Name of the report among the observed metrics of a batch. The name is `penstock`. Where the query has a metric of its
 * own with that name, it is `penstock#1`, and so on: the report always has the highest number, so readers can find it.
 */
private[penstock] object ReportName {
  private val Name = "penstock"
  private val Numbered = s"$Name#(\\d{1,9})".r

  /** A name with a higher number than all such names in a plan. */
  def beside(plan: SparkPlan): String = {
    val taken = plan.collectWithSubqueries { case metrics: CollectMetricsExec => metrics.name }.flatMap(number)
    taken.maxOption.fold(Name)(last => s"$Name#${last + 1}")
  }

  /** The name with the highest number: the report's name, if there is a report. */
  def latest(names: Iterable[String]): Option[String] =
    names.flatMap(name => number(name).map(_ -> name)).maxByOption(_._1).map(_._2)

  private def number(name: String): Option[Int] = name match {
    case Name => Some(0)
    case Numbered(digits) => Some(digits.toInt)
    case _ => None
  }
}
