package org.apache.spark.sql.penstock.commit

import java.util.Arrays

import scala.collection.mutable

import org.apache.spark.sql.penstock.lease.Holders

import io.penstock.telemetry.MovedState

/**
 * Executors that hold the shards of one query run in memory, and the state that the open batch has moved between them.
 * Not thread safe, except for [[loads]]. Executors are task locations.
 *
 * @param shardCount
 *   S, the number of base shards
 */
final private class ShardLocations(shardCount: Int) {

  /** Executor that committed each shard last, by region; null if unknown. */
  private val owners = mutable.Map[Long, Array[String]]()

  /** Executor that holds a replica of each shard, by region. A replica may be older than the newest batch. */
  private val replicas = mutable.Map[Long, Array[String]]()
  private val addresses = mutable.Map[String, Map[String, String]]()
  private val moved = mutable.Map[Long, MovedState]()

  /** Newest load of each shard that tasks reported. */
  val loads = new StateLoads

  /** Starts a batch, which has moved nothing yet. Forgets the addresses of executors that hold nothing. */
  def beginBatch(): Unit = {
    val holding = (owners.valuesIterator ++ replicas.valuesIterator).flatten.toSet
    addresses.filterInPlace((executor, _) => holding(executor))
    moved.clear()
  }

  /** Records where the shards of a commit are now. */
  def committed(c: TaskCommitted, batch: OpenBatch): Unit = {
    if (c.sidecar.isEmpty) addresses -= c.executor else addresses(c.executor) = c.sidecar
    for ((region, stores) <- c.stores.groupBy(s => batch.regionOf(s.store.operatorId)); r <- region) {
      val shards = batch.layout(r).shards
      val regionOwners = owners.get(r).filter(_.length >= shards).getOrElse(Arrays.copyOf(ownersOf(r), shards))
      moved(r) = stores.foldLeft(movedOf(r))((sum, s) =>
        sum + MovedState(bytesFromOthers(regionOwners, s, c.executor), s.loadNs, s.brought)
      )
      stores.foreach { s =>
        s.shards.foreach(own(r, regionOwners, _, c.executor))
        loads.record(r, s)
      }
      owners(r) = regionOwners
    }
  }

  /** Records that a leaving executor has handed shards over to another one. */
  def handedOver(m: ShardsHandedOver): Unit = owners.get(m.region).foreach { regionOwners =>
    m.shards.foreach(s => if (s < regionOwners.length && regionOwners(s) == m.from) regionOwners(s) = m.to)
  }

  /** Records shards that arrived at an executor before tasks of the open batch needed them. */
  def broughtAhead(batch: OpenBatch, region: Long, executor: String, shards: Seq[Int]): Unit =
    owners.get(region).foreach { regionOwners =>
      val bytes = loads.bytesOf(region, regionOwners.length)
      // If a shard was committed since, the executor that committed it has the newer content.
      val moving =
        shards.filter(s => s < regionOwners.length && regionOwners(s) != executor && batch.isUntouched(region, s))
      moving.foreach(own(region, regionOwners, _, executor))
      val movedBytes = moving.map(bytes(_)).sum
      moved(region) = movedOf(region) + MovedState(movedBytes, 0L, ahead = moving.size, aheadBytes = movedBytes)
    }

  /**
   * Records the replicas that an executor holds after it was asked to take some.
   *
   * @param asked
   *   shards that the executor was asked to take
   * @param shards
   *   those of `asked` that it holds now
   */
  def copied(region: Long, executor: String, asked: Seq[Int], shards: Seq[Int]): Unit = {
    val regionReplicas = replicasFor(region, asked.maxOption.getOrElse(-1))
    val held = shards.toSet
    asked.foreach { s =>
      if (held(s)) regionReplicas(s) = executor
      else if (regionReplicas(s) == executor) regionReplicas(s) = null
    }
  }

  /** Executor that committed each shard last; null if unknown. */
  def ownersOf(region: Long): Array[String] = owners.get(region).fold(new Array[String](shardCount))(_.clone())

  /** Executor that holds a replica of each shard; null, or no entry, if there is none. */
  def replicasOf(region: Long): Array[String] = replicas.get(region).fold(Array.empty[String])(_.clone())

  /** Addresses of an executor's transfer sidecar, by transport; None if shards cannot be asked from it. */
  def addressesOf(executor: String): Option[Map[String, String]] = addresses.get(executor)

  /** Executors that can be asked for shards, sorted. */
  def reachable: Seq[String] = addresses.keys.toSeq.sorted

  /** Executors to ask for the shards of a region. */
  def holdersOf(region: Long): Holders =
    owners.get(region).fold(Holders.Unknown)(Holders.of(_, replicasOf(region), addresses))

  /** State of a region that the open batch had to move to where its tasks run. */
  def movedOf(region: Long): MovedState = moved.getOrElse(region, MovedState.Nothing)

  /** Makes an executor the owner of a shard. The previous owner keeps its copy for a while, as a replica. */
  private def own(region: Long, owners: Array[String], shard: Int, executor: String): Unit = {
    val before = owners(shard)
    owners(shard) = executor
    if (before != null && before != executor) replicasFor(region, shard)(shard) = before
  }

  /** Replicas of a region for updating, with an entry for the shard. */
  private def replicasFor(region: Long, shard: Int): Array[String] = {
    val known = replicas.getOrElse(region, Array.empty[String])
    if (shard >= known.length) replicas(region) = Arrays.copyOf(known, shard + 1)
    replicas.getOrElse(region, known)
  }

  /** Bytes of the shards of a commit that another executor owned before. */
  private def bytesFromOthers(owners: Array[String], commit: StoreCommit, executor: String): Long =
    commit.shards.indices.filter { i =>
      val before = owners(commit.shards(i))
      before != null && before != executor
    }.map(commit.state.bytes(_)).sum
}
