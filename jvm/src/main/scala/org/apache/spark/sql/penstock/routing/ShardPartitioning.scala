package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning

import io.penstock.sharding.Layout

/**
 * What a plan knows of a routed region before its batch runs. Two plans are equal where run, batch, region and numbers
 * are: two regions never share a shuffle, because they are bound apart.
 *
 * @param tasks
 *   N, tasks that read the exchanges of the region; S where these are read by shard
 * @param layout
 *   the shards, for each of which each map task writes a block
 * @param routingVersion
 *   number of the routing version that gave N
 * @param byShard
 *   whether partition p is shard p
 * @param routing
 *   the region's driver side; not part of the equality
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
 * Output of a routed exchange: rows of equal keys share a task, but which one is decided at the barrier. Stays a
 * [[HashPartitioning]], because a union compares its inputs' partitionings by that type.
 *
 * @param reader
 *   operator that gets the rows; not part of the equality, since a plan may read an exchange twice
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

  /** Where no stateful operator gets the rows. */
  val NoReader: Long = -1L
}
