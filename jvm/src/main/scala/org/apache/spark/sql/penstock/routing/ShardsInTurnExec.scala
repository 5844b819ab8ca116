package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning, PartitioningCollection}
import org.apache.spark.sql.execution.{SortExec, SparkPlan, UnaryExecNode}

/**
 * Turns S input partitions of one shard each into N output partitions. Each task runs the partitions of its shards one
 * after another. The shards of a task are bound to it at the barrier.
 *
 * @param outputPartitioning
 *   Partitioning of the output, with N partitions
 * @param binds
 *   Whether the stateful operators are above this node and use all shards of the task at once. Otherwise they are below
 *   it and use one shard at a time
 */
final case class ShardsInTurnExec(child: SparkPlan, override val outputPartitioning: Partitioning, binds: Boolean)(
    @transient val routing: RegionRouting
) extends UnaryExecNode {

  override def nodeName: String = "ShardsInTurn"
  override def output: Seq[Attribute] = child.output
  override protected def otherCopyArgs: Seq[AnyRef] = routing :: Nil
  override protected def stringArgs: Iterator[Any] = Iterator(s"tasks=${outputPartitioning.numPartitions}")

  override protected def doExecute(): RDD[InternalRow] =
    new ShardsInTurnRDD(child.execute(), routing, outputPartitioning.numPartitions, binds)

  override protected def withNewChildInternal(newChild: SparkPlan): ShardsInTurnExec = copy(child = newChild)(routing)
}

object ShardsInTurnExec {

  /** Adds the node between the stateful operators of a region and an input that is partitioned by shard. */
  def below(input: SparkPlan, plan: RegionPlan): SparkPlan =
    ordered(input, ShardsInTurnExec(input, byShard(input.outputPartitioning, plan), binds = true)(plan.routing))

  /** Adds the node above the stateful operators of a region. */
  def above(top: SparkPlan, partitioning: Partitioning, routing: RegionRouting): SparkPlan =
    ordered(top, ShardsInTurnExec(top, partitioning, binds = false)(routing))

  /** Restores the order of rows, because the concatenation of sorted partitions is not sorted. */
  private def ordered(one: SparkPlan, several: SparkPlan): SparkPlan = one.outputOrdering match {
    case Nil => several
    case by => SortExec(by, global = false, several)
  }

  private def byShard(partitioning: Partitioning, plan: RegionPlan): Partitioning = partitioning match {
    case h: HashPartitioning => new ShardPartitioning(h.expressions, plan, ShardPartitioning.NoReader)
    case c: PartitioningCollection =>
      PartitioningCollection(c.partitionings.collect { case h: HashPartitioning => byShard(h, plan) })
    case p => throw new IllegalArgumentException(s"partitioning $p is not a hash partitioning")
  }
}
