package org.apache.spark.sql.penstock.benchmarks

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.{SQLMetrics, SQLShuffleReadMetricsReporter, SQLShuffleWriteMetricsReporter}
import org.apache.spark.sql.penstock.lease.TaskLeases
import org.apache.spark.sql.penstock.routing.{RoutedExchange, ShardPartitioning}
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.util.MutablePair
import org.apache.spark.{PartitionIdPassthrough, ShuffleDependency, TaskContext}

/**
 * Penstock without a barrier, for comparison: shards are bound to tasks when the batch is planned, without counts of
 * rows, and each map task writes one block per task. Used in sessions that set [[PlannedBinding.Key]] to true.
 */
class PlannedBinding extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = extensions.injectColumnar { session =>
    new ColumnarRule {
      // This rule runs after Penstock's own rule, which runs before the transitions.
      override def postColumnarTransitions: Rule[SparkPlan] = plan =>
        if (session.conf.get(PlannedBinding.Key, "false").toBoolean) plan.transformUp {
          case e: RoutedExchange => PlannedExchangeExec(e.outputPartitioning, e.child)
        }
        else plan
    }
  }
}

object PlannedBinding {
  val Key = "spark.benchmark.bindWhenPlanning"
}

/** Shuffles rows to tasks by a binding that is part of the plan, and gives the tasks the lease of their shards. */
final case class PlannedExchangeExec(override val outputPartitioning: Partitioning, child: SparkPlan)
    extends UnaryExecNode {
  private lazy val writing = SQLShuffleWriteMetricsReporter.createShuffleWriteMetrics(sparkContext)
  private lazy val reading = SQLShuffleReadMetricsReporter.createShuffleReadMetrics(sparkContext)
  override lazy val metrics = Map("dataSize" -> SQLMetrics.createSizeMetric(sparkContext, "data size")) ++
    reading ++ writing

  override def output: Seq[Attribute] = child.output

  override protected def doExecute(): RDD[InternalRow] = {
    val partitioning = outputPartitioning.asInstanceOf[ShardPartitioning]
    val binding = partitioning.plan.routing.barrier.decide().binding
    val lease = partitioning.plan.routing.lease
    val shuffle = new ShuffleDependency[Int, InternalRow, InternalRow](
      withTasks(partitioning, binding.taskOf),
      new PartitionIdPassthrough(binding.tasks),
      new UnsafeRowSerializer(child.output.size, longMetric("dataSize")),
      shuffleWriterProcessor =
        org.apache.spark.sql.execution.exchange.ShuffleExchangeExec.createShuffleWriteProcessor(writing)
    )
    new ShuffledRowRDD(shuffle, reading).mapPartitionsWithIndexInternal { (task, rows) =>
      TaskLeases.install(TaskContext.get(), lease, binding.shardsOf(task))
      rows
    }
  }

  private def withTasks(partitioning: ShardPartitioning, taskOf: Array[Int]): RDD[Product2[Int, InternalRow]] = {
    val keys = BindReferences.bindReferences(partitioning.expressions, child.output)
    val layout = partitioning.plan.layout
    child.execute().mapPartitionsInternal { rows =>
      val shard = ShardHash(keys, layout)
      val pair = new MutablePair[Int, InternalRow]()
      rows.map(row => pair.update(taskOf(shard.of(row)), row))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}
