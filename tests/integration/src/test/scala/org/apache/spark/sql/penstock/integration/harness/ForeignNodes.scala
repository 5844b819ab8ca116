package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{BaseStreamingDeduplicateExec, StatefulOperator}
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.penstock.routing.{ForeignExec, OpaqueExec}

/** A plugin that adds its own nodes to the plans of stateful streaming queries, if the session asks for it. */
class ForeignNodes extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = extensions.injectColumnar { session =>
    new ColumnarRule {
      override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
        override def apply(plan: SparkPlan): SparkPlan =
          if (!plan.exists(_.isInstanceOf[StatefulOperator])) plan
          else session.conf.get(ForeignNodes.Key, "") match {
            case ForeignNodes.Above => ForeignExec(plan)
            case ForeignNodes.Below => plan.transformUp { case e: ShuffleExchangeExec => OpaqueExec.over(e) }
            case ForeignNodes.Between => plan.transformUp { case d: BaseStreamingDeduplicateExec => OpaqueExec.over(d) }
            case ForeignNodes.HandingOver => plan.transformUp { case d: BaseStreamingDeduplicateExec => ForeignExec(d) }
            case _ => plan
          }
      }
    }
  }
}

object ForeignNodes {

  /** Session setting that selects where nodes are added. */
  val Key = "test.foreignNodes"

  /** Allowed values: on top of the plan, above every exchange, above every deduplication. */
  val Above = "above"
  val Below = "below"
  val Between = "between"

  /** Above every deduplication, with a node that works for any number of partitions. */
  val HandingOver = "handing over"

  /** Settings of the application. */
  val Conf: Map[String, String] = Map("spark.sql.extensions" -> classOf[ForeignNodes].getName)
}
