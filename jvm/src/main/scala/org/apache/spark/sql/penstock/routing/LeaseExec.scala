package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.penstock.executors.LiveExecutors
import org.apache.spark.sql.penstock.lease.TaskLeases
import org.apache.spark.{OneToOneDependency, Partition, TaskContext}

/**
 * Gives each task its lease where no routed exchange does so before a store is opened. Rows pass unchanged. The node is
 * used
 *
 *   - below the lowest stateful operators of a region that is not routed: the task of partition p gets the lease of
 *     shard p,
 *   - above a union inside a region, because Spark opens the inputs of a union one after the other, and only when rows
 *     are requested.
 *
 * @param reason
 *   Why the region is not routed, for `explain`; empty if it is routed
 */
final case class LeaseExec(child: SparkPlan, reason: String)(@transient val routing: RegionRouting)
    extends UnaryExecNode {

  override def nodeName: String = "ShardLease"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def otherCopyArgs: Seq[AnyRef] = routing :: Nil
  override protected def stringArgs: Iterator[Any] =
    Iterator(if (routing.reason.isEmpty) "as bound at the barrier" else s"partition = shard: $reason")

  override protected def doExecute(): RDD[InternalRow] = new LeaseRDD(child.execute(), routing)

  override protected def withNewChildInternal(newChild: SparkPlan): LeaseExec = copy(child = newChild)(routing)
}

/** Installs the lease as a partition is opened, before the operators above open their stores. */
final private class LeaseRDD(parent: RDD[InternalRow], @transient private val routing: RegionRouting)
    extends RDD[InternalRow](parent.context, Seq(new OneToOneDependency(parent))) {
  private val shipped = new ShippedBinding(routing)
  private val routed = routing.reason.isEmpty
  @transient private lazy val owners = routing.owners
  @transient private lazy val getsTasks = LiveExecutors.getsTasks(context)

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  /**
   * The executor that has the state of the shard. If there is none, or it gets no tasks, Spark uses the locations of the
   * parent.
   */
  override protected def getPreferredLocations(split: Partition): Seq[String] =
    if (routed) Nil else owners.lift(split.index).filter(owner => owner != null && getsTasks(owner)).toSeq

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val shards = if (routed) shipped.forTask(split.index).shardsOf(split.index) else Array(split.index)
    TaskLeases.install(context, shipped.lease, shards)
    firstParent[InternalRow].iterator(split, context)
  }
}
