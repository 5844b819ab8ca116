package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/**
 * Placed below a stateful operator. Times how long this operator, and all nodes above it in the same task, work on each
 * row.
 *
 * @param keys
 *   Expressions whose hash determines the shard of a row
 * @param reader
 *   Operator that receives the rows
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
    val (regionLoad, meteredReader) = (load, reader)
    child.execute().mapPartitionsInternal(MeteredRows.within(_, bound, meteredReader, regionLoad))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): MeterExec = copy(child = newChild)(load)
}
