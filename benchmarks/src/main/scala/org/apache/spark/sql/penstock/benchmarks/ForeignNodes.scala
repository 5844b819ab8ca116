package org.apache.spark.sql.penstock.benchmarks

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateExec

/** A plugin that adds nodes to the plans of all sides. The setting [[ForeignNodes.Key]] selects them. */
class ForeignNodes extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = extensions.injectColumnar { session =>
    new ColumnarRule {
      override def preColumnarTransitions: Rule[SparkPlan] = plan =>
        session.conf.get(ForeignNodes.Key, "") match {
          case ForeignNodes.HandingOver => plan.transformUp { case d: StreamingDeduplicateExec => ForeignExec(d) }
          case ForeignNodes.Between => plan.transformUp { case d: StreamingDeduplicateExec => OpaqueExec(d) }
          case ForeignNodes.Below => plan.transformUp { case e: ShuffleExchangeExec => OpaqueExec(e) }
          case _ => plan
        }
    }
  }
}

object ForeignNodes {
  val Key = "spark.benchmark.foreignNodes"

  /** A node between an exchange and the state above it. */
  val Below = "node below"

  /** A node between a deduplication and the state above it. */
  val Between = "node between"

  /** A node at the same place that accepts any number of partitions. */
  val HandingOver = "node handing over"
}

/** A node that requires its input to have as many partitions as when it was planned. */
final case class OpaqueExec(child: SparkPlan, others: Int) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override protected def doExecute(): RDD[InternalRow] =
    child.execute().zipPartitions(sparkContext.parallelize(Seq.empty[Int], others))((rows, _) => rows)
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

object OpaqueExec {
  def apply(child: SparkPlan): OpaqueExec = OpaqueExec(child, child.outputPartitioning.numPartitions)
}

/** A node that Penstock does not know. It passes rows on unchanged. */
final case class ForeignExec(child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}
