package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning, PartitioningCollection}
import org.apache.spark.sql.execution.{SortExec, SparkPlan, UnaryExecNode}

/**
 * Makes N partitions out of S, which hold a shard each: every task runs those of its shards one after the other. The shards
 * of a task are those that are bound to it at the barrier.
 *
 * @param outputPartitioning
 *   N partitions
 * @param binds
 *   whether the stateful operators are above, which get all shards of the task at once; else they are below, a shard at a
 *   time
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

  /** Stands below the stateful operators of a region, above what feeds them by shard. */
  def below(input: SparkPlan, plan: RegionPlan): SparkPlan =
    ordered(input, ShardsInTurnExec(input, byShard(input.outputPartitioning, plan), binds = true)(plan.routing))

  /** Stands above the stateful operators of a region. */
  def above(top: SparkPlan, partitioning: Partitioning, routing: RegionRouting): SparkPlan =
    ordered(top, ShardsInTurnExec(top, partitioning, binds = false)(routing))

  /** Partitions that were in order one by one are not, one after the other. */
  private def ordered(one: SparkPlan, several: SparkPlan): SparkPlan = one.outputOrdering match {
    case Nil => several
    case by => SortExec(by, global = false, several)
  }

  private def byShard(partitioning: Partitioning, plan: RegionPlan): Partitioning = partitioning match {
    case h: HashPartitioning => new ShardPartitioning(h.expressions, plan, ShardPartitioning.NoReader)
    case c: PartitioningCollection =>
      PartitioningCollection(c.partitionings.collect { case h: HashPartitioning => byShard(h, plan) })
    case p => throw new IllegalArgumentException(s"$p is not by hash")
  }
}
