package org.apache.spark.sql.penstock.lease

import java.util.UUID

import io.penstock.sharding.Layout
import io.penstock.state.format.{ShardRefs, StoreKey}

/** How the rows of an operator's stores name their shard: which fields of a state key are the partitioning key. */
sealed trait OperatorKind extends Serializable

object OperatorKind {

  /** The whole state key: aggregation, deduplication, groups with state. */
  case object WholeKey extends OperatorKind

  /** All but the last field, which is the session's start. */
  case object SessionWindow extends OperatorKind

  /** Stream-stream join; the fields differ by state format version and by store or column family. */
  final case class Join(stateFormatVersion: Int) extends OperatorKind

  /** transformWithState: value, list, map, timer and TTL families each have their own shape. */
  case object TransformWithState extends OperatorKind
}

/**
 * One stateful operator of a region.
 *
 * @param storeNames
 *   the stores that a task of this operator commits in every batch
 */
final case class OperatorLease(operatorId: Long, kind: OperatorKind, storeNames: Seq[String])

/**
 * A region as the planner sees it.
 *
 * @param region
 *   smallest operator id of the region: its name within a batch
 * @param single
 *   the operators take one partition only (global aggregate, limit): everything lives in shard 0
 */
final case class RegionSpec(region: Long, single: Boolean, operators: Seq[OperatorLease]) {

  /** The stores that a task of the region commits in every batch. */
  def stores: Seq[StoreKey] = for (o <- operators; name <- o.storeNames) yield StoreKey(o.operatorId, name)
}

/**
 * One micro-batch of one query run, as planned.
 *
 * @param stateRoot
 *   the query's state directory, `StatefulOperatorStateInfo.checkpointLocation`
 * @param batchId
 *   also the store version that the batch reads; it writes version `batchId + 1`
 * @param shardCount
 *   S, Spark's number of state partitions
 * @param countedBySpark
 *   whether Spark counts the commits of the batch's state partitions (it does for foreachBatch): each is to be reported
 */
final case class BatchSpec(
    runId: UUID,
    stateRoot: String,
    batchId: Long,
    shardCount: Int,
    regions: Seq[RegionSpec],
    countedBySpark: Boolean = false
)

/**
 * What the tasks of one region need before they open their stores, but for the binding. Made when planning, shipped
 * inside the task binary.
 *
 * @param layout
 *   of the region's state in this batch
 * @param base
 *   the state that the batch starts from
 * @param holders
 *   executors that have the state in memory
 */
final case class RegionLease(
    runId: UUID,
    stateRoot: String,
    batchId: Long,
    layout: Layout,
    spec: RegionSpec,
    base: BaseState,
    holders: Holders = Holders.Unknown
) extends Serializable

/**
 * An executor that can be asked for shards.
 *
 * @param executor
 *   as a task location
 * @param addresses
 *   of its sidecar, by transport
 */
final case class Holder(executor: String, addresses: Map[String, String]) extends Serializable

/**
 * Who has the shards of a region in memory, as the batch before left them.
 *
 * @param all
 *   the executors that can be asked
 * @param byShard
 *   number of each shard's executor in `all`, -1 where there is none
 * @param replicas
 *   number of the executor that has a replica of each shard, -1 where none has
 */
final case class Holders(all: Array[Holder], byShard: Array[Short], replicas: Array[Short]) extends Serializable {

  /** In the order in which they are to be asked. */
  def of(shard: Int): Seq[Holder] =
    Seq(byShard, replicas).flatMap(_.lift(shard)).filter(_ >= 0).distinct.map(all(_))
}

object Holders {
  val Unknown: Holders = Holders(Array.empty, Array.empty, Array.empty)

  /**
   * @param owners
   *   executor of each shard, as a task location; null where unknown
   * @param replicas
   *   executor that has a replica of each shard; null where none has
   * @param addresses
   *   of executors' sidecars
   */
  def of(
      owners: Array[String],
      replicas: Array[String],
      addresses: collection.Map[String, Map[String, String]]
  ): Holders = {
    val all = (owners ++ replicas).filter(o => o != null && addresses.contains(o)).distinct
    if (all.isEmpty) Unknown
    else {
      val numbers = all.zipWithIndex.toMap
      def numbered(of: Array[String]) = of.map(numbers.getOrElse(_, -1).toShort)
      Holders(all.map(e => Holder(e, addresses(e))), numbered(owners), numbered(replicas))
    }
  }
}

/**
 * The stores of a region at the version the batch reads.
 *
 * @param generation
 *   generation of the manifest of the previous batch; -1 where there is none (first batch)
 */
final case class BaseState(generation: Long, stores: Map[StoreKey, BaseStore]) extends Serializable

/**
 * Lineage of every shard of a store at the version the batch reads: which attempt's changes a shard's content ends
 * with. Content is the same wherever the lineage is the same.
 *
 * @param layout
 *   as the batch before left it
 * @param lineages
 *   two longs per shard: high and low bits of the uuid of the commit that last changed it; zero for a shard that was never
 *   written
 */
final case class BaseStore(layout: Layout, lineages: Array[Long]) extends Serializable {

  /** Lineage of a shard as the batch before left it. */
  def lineage(shard: Int): UUID = new UUID(lineages(2 * shard), lineages(2 * shard + 1))

  /** Lineage that a shard of the batch's layout starts from. */
  def lineage(shard: Int, in: Layout): UUID =
    if (in.continues(shard, layout)) lineage(shard) else ShardRefs.NeverWritten
}
