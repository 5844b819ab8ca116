package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.penstock.lease.{RegionLease, TaskLeases}
import org.apache.spark.{OneToOneDependency, Partition, TaskContext}

/**
 * Stands below the lowest stateful operators of a region that is not routed, and gives each task its lease: shard p to
 * task p. Passes rows on as they are.
 *
 * @param reason
 *   why the region is not routed, for `explain`
 */
final case class LeaseExec(child: SparkPlan, reason: String)(@transient val routing: RegionRouting)
    extends UnaryExecNode {

  override def nodeName: String = "ShardLease"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def otherCopyArgs: Seq[AnyRef] = routing :: Nil
  override protected def stringArgs: Iterator[Any] = Iterator(s"task = shard: $reason")

  override protected def doExecute(): RDD[InternalRow] =
    new LeaseRDD(child.execute(), routing.lease, routing)

  override protected def withNewChildInternal(newChild: SparkPlan): LeaseExec = copy(child = newChild)(routing)
}

/** Installs the lease of shard p as partition p is opened, before the operators above open their stores. */
final private class LeaseRDD(
    parent: RDD[InternalRow],
    lease: RegionLease,
    @transient private val routing: RegionRouting
) extends RDD[InternalRow](parent.context, Seq(new OneToOneDependency(parent))) {

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  /** Where the shard's state is; else, as none is known here, where the parent's data are. */
  override protected def getPreferredLocations(split: Partition): Seq[String] =
    routing.owner(split.index).toSeq

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    TaskLeases.install(context, lease, Array(split.index))
    firstParent[InternalRow].iterator(split, context)
  }
}
