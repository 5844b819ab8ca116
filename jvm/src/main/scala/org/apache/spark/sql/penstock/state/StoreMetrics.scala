package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.execution.streaming.state._

import io.penstock.metrics.{Metric, MetricOutput, MetricUnit, Metrics}

/**
 * Metrics of a store in `StreamingQueryProgress.stateOperators.customMetrics`, summed over the tasks of an operator.
 */
object StoreMetrics {
  val All: Seq[StateStoreCustomMetric] = Metrics.at(MetricOutput.Operator).map(of)

  /** The metric of Spark that corresponds to a metric of Penstock. */
  def of(metric: Metric): StateStoreCustomMetric = metric.unit match {
    case MetricUnit.Bytes => StateStoreCustomSizeMetric(metric.name, metric.meaning)
    case MetricUnit.Milliseconds => StateStoreCustomTimingMetric(metric.name, metric.meaning)
    case _ => StateStoreCustomSumMetric(metric.name, metric.meaning)
  }
}
