package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.penstock.state.StateReadRule

/**
 * Everything that Penstock adds to a session's planner. It reads query options, prepares queries when they start,
 * routes micro-batches, and groups the partitions of state readers into tasks.
 */
final class RoutingExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectCheckRule { session =>
      val routing = SessionRoutings.current.of(session)
      plan => routing.readOptions(plan)
    }
    extensions.injectCheckRule { session =>
      val starts = new QueryStarts(session, SessionRoutings.current.of(session))
      plan => starts.expect(plan)
    }
    extensions.injectColumnar { session =>
      new RoutingColumnarRule(new RoutingRule(SessionRoutings.current.of(session)), new StateReadRule(session))
    }
  }
}

final private[routing] class RoutingColumnarRule(routing: RoutingRule, stateReads: StateReadRule) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = plan => stateReads(routing(plan))
}
