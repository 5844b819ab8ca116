package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.execution.{CollectMetricsExec, SparkPlan}

/**
 * Name of the report among a batch's observed metrics, which a query may have metrics of its own among: `penstock`, or
 * `penstock#1` and so on, so that it is the last in this order, and both sides know it.
 */
private[routing] object ReportName {
  private val Name = "penstock"
  private val Numbered = s"$Name#(\\d{1,9})".r

  /** A name that comes after those in a plan. */
  def beside(plan: SparkPlan): String = {
    val taken = plan.collectWithSubqueries { case metrics: CollectMetricsExec => metrics.name }.flatMap(number)
    taken.maxOption.fold(Name)(last => s"$Name#${last + 1}")
  }

  /** The last of these names, which is the report's where there is one. */
  def latest(names: Iterable[String]): Option[String] =
    names.flatMap(name => number(name).map(_ -> name)).maxByOption(_._1).map(_._2)

  private def number(name: String): Option[Int] = name match {
    case Name => Some(0)
    case Numbered(digits) => Some(digits.toInt)
    case _ => None
  }
}
