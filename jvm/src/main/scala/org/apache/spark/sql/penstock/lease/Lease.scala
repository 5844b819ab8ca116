package org.apache.spark.sql.penstock.lease

import java.util.UUID

import io.penstock.sharding.Layout
import io.penstock.state.format.{ShardRefs, StoreKey}

/** Which fields of a state key form the partitioning key, whose hash determines the shard. */
sealed trait OperatorKind extends Serializable

object OperatorKind {

  /** The whole state key: aggregation, deduplication, groups with state. */
  case object WholeKey extends OperatorKind

  /** All but the last field, which is the session's start. */
  case object SessionWindow extends OperatorKind

  /** Stream-stream join. The fields depend on the state format version and on the store or column family. */
  final case class Join(stateFormatVersion: Int) extends OperatorKind

  /** transformWithState. Keys of value, list, map, timer and TTL families have different shapes. */
  case object TransformWithState extends OperatorKind
}

/**
 * One stateful operator of a region.
 *
 * @param storeNames
 *   names of the stores that a task of this operator commits in every batch
 */
final case class OperatorLease(operatorId: Long, kind: OperatorKind, storeNames: Seq[String])

/**
 * A region and its stateful operators.
 *
 * @param region
 *   smallest operator id of the region, which identifies the region within a batch
 * @param single
 *   whether the operators accept only one partition (global aggregate, limit). All state is then in shard 0
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
 *   id of the batch, and the store version that it reads. It writes version `batchId + 1`
 * @param shardCount
 *   S, Spark's number of state partitions
 * @param countedBySpark
 *   whether Spark counts the commits of the batch's state partitions, as it does for foreachBatch. If so, each commit
 *   must be reported to Spark
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
 * What the tasks of one region need before they open their stores, except for the binding. Created when the batch is
 * planned, and shipped inside the task binary.
 *
 * @param layout
 *   layout of the region's state in this batch
 * @param base
 *   state that the batch starts from
 * @param holders
 *   executors that hold the region's state in memory
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
 *   the executor as a task location
 * @param addresses
 *   addresses of the executor's transfer sidecar, by transport
 */
final case class Holder(executor: String, addresses: Map[String, String]) extends Serializable

/**
 * The executors that hold the shards of a region in memory after the previous batch.
 *
 * @param all
 *   executors that can be asked for shards
 * @param byShard
 *   index in `all` of the executor of each shard, -1 if there is none
 * @param replicas
 *   index in `all` of the executor that holds a replica of each shard, -1 if there is none
 */
final case class Holders(all: Array[Holder], byShard: Array[Short], replicas: Array[Short]) extends Serializable {

  /** The executors to ask for a shard, in this order: the one that committed it last, then the one with a replica. */
  def of(shard: Int): Seq[Holder] =
    Seq(byShard, replicas).flatMap(_.lift(shard)).filter(_ >= 0).distinct.map(all(_))
}

object Holders {
  val Unknown: Holders = Holders(Array.empty, Array.empty, Array.empty)

  /**
   * @param owners
   *   executor of each shard, as a task location; null if unknown
   * @param replicas
   *   executor that holds a replica of each shard; null if there is none
   * @param addresses
   *   addresses of each executor's transfer sidecar, by transport
   */
  def of(
      owners: Array[String],
      replicas: Array[String],
      addresses: collection.Map[String, Map[String, String]]
  ): Holders = {
    val all = (owners ++ replicas).filter(o => o != null && addresses.contains(o)).distinct
    if (all.isEmpty) Unknown
    else {
      val indexes = all.zipWithIndex.toMap
      def indexed(executors: Array[String]) = executors.map(indexes.getOrElse(_, -1).toShort)
      Holders(all.map(e => Holder(e, addresses(e))), indexed(owners), indexed(replicas))
    }
  }
}

/**
 * The stores of a region at the version that the batch reads.
 *
 * @param generation
 *   generation of the previous batch's manifest; -1 in the first batch, which has none
 */
final case class BaseState(generation: Long, stores: Map[StoreKey, BaseStore]) extends Serializable

/**
 * Lineage of every shard of a store at the version that the batch reads. Contents with equal lineage are equal.
 *
 * @param layout
 *   layout of the store after the previous batch
 * @param lineages
 *   two longs per shard: high and low bits of the UUID of the commit that last changed it; zeros for a shard that was
 *   never written
 */
final case class BaseStore(layout: Layout, lineages: Array[Long]) extends Serializable {

  /** Lineage of a shard after the previous batch. */
  def lineage(shard: Int): UUID = new UUID(lineages(2 * shard), lineages(2 * shard + 1))

  /** Lineage that a shard of the batch's layout starts from: a shard that is new in that layout was never written. */
  def lineage(shard: Int, in: Layout): UUID =
    if (in.continues(shard, layout)) lineage(shard) else ShardRefs.NeverWritten
}
