package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning

import io.penstock.sharding.Layout

/**
 * What is known about a routed region before its batch runs. Two plans are equal if everything but `routing` is equal,
 * so two regions never share a shuffle. They must not, because they are bound independently.
 *
 * @param runId
 *   Id of the query's run
 * @param batchId
 *   Id of the batch
 * @param region
 *   Id of the region
 * @param tasks
 *   Number of tasks that read the region's exchanges; the number of shards if these are read by shard
 * @param layout
 *   Layout of the region's shards; each map task writes one block for each shard
 * @param routingVersion
 *   Number of the routing version that determines the number of tasks
 * @param byShard
 *   Whether partition p is shard p
 * @param routing
 *   Driver side of the region; not part of the equality
 */
final class RegionPlan(
    val runId: UUID,
    val batchId: Long,
    val region: Long,
    val tasks: Int,
    val layout: Layout,
    val routingVersion: Long,
    val byShard: Boolean,
    @transient val routing: RegionRouting
) extends Serializable {
  private def content = (runId, batchId, region, tasks, layout, routingVersion, byShard)

  override def equals(other: Any): Boolean = other match {
    case p: RegionPlan => p.content == content
    case _ => false
  }
  override def hashCode(): Int = content.hashCode()
  override def toString: String = s"tasks=$tasks, shards=${layout.shards}, routingVersion=$routingVersion"
}

/**
 * Partitioning of a routed exchange: rows with equal keys are in the same task, but which task is decided at the
 * barrier. It extends [[HashPartitioning]] because a union compares the partitionings of its inputs by that type.
 *
 * @param plan
 *   The region, as planned
 * @param reader
 *   Id of the operator that receives the rows; not part of the equality, because a plan may read an exchange twice
 */
final class ShardPartitioning(keys: Seq[Expression], val plan: RegionPlan, val reader: Long)
    extends HashPartitioning(keys, plan.tasks) {

  override def partitionIdExpression: Expression =
    if (plan.byShard) super.partitionIdExpression
    else throw new UnsupportedOperationException("the task of a row is decided when the batch runs, not by its key")

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): HashPartitioning =
    new ShardPartitioning(newChildren, plan, reader)

  override def canEqual(other: Any): Boolean = other.isInstanceOf[ShardPartitioning]

  override def equals(other: Any): Boolean = other match {
    case l: ShardPartitioning => l.plan == plan && l.expressions == expressions
    case _ => false
  }
  override def hashCode(): Int = expressions.hashCode() * 31 + plan.hashCode()
  override def productPrefix: String = "ShardPartitioning"
  override def toString: String = s"shardpartitioning(${expressions.mkString(", ")}, $plan)"
}

private[routing] object ShardPartitioning {

  /** Value of `reader` if no stateful operator receives the rows. */
  val NoReader: Long = -1L
}
