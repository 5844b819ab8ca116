package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper

/** Penstock's nodes in a physical plan, including those in adaptive plans and subqueries. */
object Plans extends AdaptiveSparkPlanHelper {
  def ours(plan: SparkPlan): Seq[String] =
    collectWithSubqueries(plan) { case node if Engine.isOurs(node) => node.nodeName }

  def of(rows: DataFrame): SparkPlan = rows.asInstanceOf[classic.Dataset[_]].queryExecution.executedPlan
}
