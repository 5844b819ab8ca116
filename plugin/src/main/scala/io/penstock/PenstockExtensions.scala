package io.penstock

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.penstock.routing.RoutingExtensions

/**
 * Extensions that the plugin appends to `spark.sql.extensions`: the planner rules.
 */
class PenstockExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = new RoutingExtensions()(extensions)
}
