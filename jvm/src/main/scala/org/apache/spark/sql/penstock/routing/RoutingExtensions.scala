package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.penstock.lease.BatchLeases
import org.apache.spark.sql.penstock.shims.RealTimeMode

/**
 * Everything that Penstock adds to a session's planner: the reading of query options, the routing of micro-batches,
 * and, where the application cannot carry them, the settings of a new query's state.
 *
 * @param leases
 *   the state layer's driver side
 */
final class RoutingExtensions(leases: => BatchLeases) extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectCheckRule { session =>
      val routing = SessionRouting.of(session, leases)
      plan => routing.readOptions(plan)
    }
    if (RealTimeMode.refusesOtherProviders) {
      extensions.injectCheckRule { session =>
        val starts = new QueryStarts(session)
        plan => starts.expect(plan)
      }
    }
    extensions.injectColumnar(session => new RoutingColumnarRule(new RoutingRule(SessionRouting.of(session, leases))))
  }
}

final private[routing] class RoutingColumnarRule(rule: RoutingRule) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = rule
}
