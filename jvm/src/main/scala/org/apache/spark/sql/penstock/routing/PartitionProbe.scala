package org.apache.spark.sql.penstock.routing

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan}
import org.apache.spark.{OneToOneDependency, Partition, TaskContext}

/**
 * Finds out whether a node that is not part of Spark keeps partitions. It gives the node inputs with other numbers of
 * partitions and looks at the RDDs that result. No partition is computed. Decision 090.
 */
private[routing] object PartitionProbe {

  /** Two numbers of partitions, so that a node that expects a certain number gets another one at least once. */
  private val Counts = Seq(3, 5)

  /**
   * Whether partition p of the output depends only on partition p of the node's single input, for any number of
   * partitions.
   */
  def keepsPartitions(node: SparkPlan): Boolean = node.children match {
    case Seq(child) =>
      requiresNothing(node) && node.outputPartitioning == child.outputPartitioning &&
      Counts.forall(n => divided(child.outputPartitioning, n).exists(keeps(node, child, _)))
    case _ => false
  }

  /**
   * Whether the node has no requirements. Subqueries are excluded because they would run before the node's RDD exists.
   */
  private def requiresNothing(node: SparkPlan): Boolean = !node.supportsColumnar && node.subqueries.isEmpty &&
    node.requiredChildDistribution.forall(_ == UnspecifiedDistribution)

  private def keeps(node: SparkPlan, child: SparkPlan, partitioning: Partitioning): Boolean =
    try {
      val input = ProbeExec(child.output, partitioning, child.outputOrdering)
      val probed = node.withNewChildren(Seq(input))
      probed.outputPartitioning == partitioning && isOneToOne(probed.execute(), input.execute())
    } catch { case NonFatal(_) => false }

  @tailrec
  private def isOneToOne(rdd: RDD[InternalRow], input: RDD[InternalRow]): Boolean = (rdd eq input) || {
    rdd.dependencies match {
      case Seq(d: OneToOneDependency[_]) => isOneToOne(d.rdd.asInstanceOf[RDD[InternalRow]], input)
      case _ => false
    }
  }

  private def divided(partitioning: Partitioning, n: Int): Option[Partitioning] = partitioning match {
    case h: HashPartitioning if h.getClass == classOf[HashPartitioning] => Some(h.copy(numPartitions = n))
    case c: PartitioningCollection =>
      val all = c.partitionings.map(divided(_, n))
      Option.when(all.forall(_.isDefined))(PartitioningCollection(all.flatten))
    case _ => None
  }
}

/** An input with a given partitioning, whose partitions cannot be computed. */
final private case class ProbeExec(
    output: Seq[Attribute],
    override val outputPartitioning: Partitioning,
    override val outputOrdering: Seq[SortOrder]
) extends LeafExecNode {
  private lazy val rdd = new ProbeRDD(this)
  override protected def doExecute(): RDD[InternalRow] = rdd
}

final private class ProbeRDD(probe: ProbeExec) extends RDD[InternalRow](probe.session.sparkContext, Nil) {
  override protected def getPartitions: Array[Partition] =
    Array.tabulate[Partition](probe.outputPartitioning.numPartitions)(RoutedPartition(_))

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] =
    throw new UnsupportedOperationException("the partitions of a probe cannot be computed")
}
