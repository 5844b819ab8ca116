package io.penstock

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.penstock.commit.StateCommits
import org.apache.spark.sql.penstock.routing.RoutingExtensions

/** What the plugin appends to `spark.sql.extensions`: the planner, with the state layer as its source of leases. */
class PenstockExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = new RoutingExtensions(StateCommits.leases)(extensions)
}
