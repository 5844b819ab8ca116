package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/**
 * Stands below a stateful operator and times what it, and all above it in the same task, do with each row.
 *
 * @param keys
 *   whose hash is the row's shard
 * @param reader
 *   the operator
 */
final case class MeterExec(keys: Seq[Expression], reader: MeteredReader, child: SparkPlan)(
    @transient val load: RegionLoad
) extends UnaryExecNode {

  override def nodeName: String = "ShardMeter"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def otherCopyArgs: Seq[AnyRef] = load :: Nil

  override protected def doExecute(): RDD[InternalRow] = {
    val bound = BindReferences.bindReferences(keys, child.output)
    val (region, by) = (load, reader)
    child.execute().mapPartitionsInternal(MeteredRows.within(_, bound, by, region))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): MeterExec = copy(child = newChild)(load)
}
