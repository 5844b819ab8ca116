package org.apache.spark.sql.penstock.state

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicReferenceArray

import scala.jdk.CollectionConverters._

import io.penstock.sharding.Layout
import io.penstock.state.format.StoreKey
import io.penstock.state.memory.MemoryAccount

/**
 * The shards of one store in this JVM.
 *
 * @param baseShards
 *   S, how many shards there are without those of pinned hashes
 * @param total
 *   counts the heap bytes of all stores
 */
final class ShardStore(val baseShards: Int, total: MemoryAccount) {

  /** Counts the heap bytes of the shards, and of what attempts have prepared for the next batch. */
  val memory = new MemoryAccount(Some(total))

  private val slots = new AtomicReferenceArray[ShardSlot](baseShards + Layout.MaxPinSlots)
  @volatile var lastUsedNs: Long = System.nanoTime()

  def slot(shard: Int): ShardSlot = {
    val s = slots.get(shard)
    if (s != null) s
    else {
      slots.compareAndSet(shard, null, new ShardSlot(shard, memory))
      slots.get(shard)
    }
  }

  /** Whether there is a slot of that number, used or not. */
  def has(shard: Int): Boolean = shard >= 0 && shard < slots.length

  def loaded: Iterator[ShardSlot] = Iterator.range(0, slots.length()).map(slots.get).filter(_ != null)
}

/**
 * All shards that this JVM holds, by query, operator and store name. Content is identified by lineage, so that a query
 * that is started again may go on with what its last run left here.
 */
object ShardStores {

  /** Counts the heap bytes of all shards, and of what tasks are changing. */
  val memory = new MemoryAccount()

  private val stores = new ConcurrentHashMap[(String, StoreKey), ShardStore]()

  def get(stateRoot: String, store: StoreKey, baseShards: Int): ShardStore = {
    // A new checkpoint at the path of an old one may have another number of shards.
    val s = stores.compute(
      (stateRoot, store),
      (_, known) =>
        if (known != null && known.baseShards == baseShards) known
        else {
          if (known != null) known.memory.close()
          new ShardStore(baseShards, memory)
        }
    )
    ShardSweeper.own.start()
    s.lastUsedNs = System.nanoTime()
    ReportedMemory.register()
    s
  }

  /** A store that is there. */
  def find(stateRoot: String, store: StoreKey): Option[ShardStore] = Option(stores.get((stateRoot, store)))

  /** Every store, by query and key. */
  def all: Map[(String, StoreKey), ShardStore] = stores.asScala.toMap

  /** Queries with shards here that nobody has opened for this long. */
  def idle(olderThanNs: Long): Set[String] = {
    val now = System.nanoTime()
    val roots = scala.collection.mutable.Map[String, Boolean]()
    stores.forEach { (k, s) =>
      roots(k._1) = roots.getOrElse(k._1, true) && now - s.lastUsedNs > olderThanNs
    }
    roots.collect { case (root, true) => root }.toSet
  }

  def drop(stateRoot: String): Unit = {
    stores.forEach((k, s) => if (k._1 == stateRoot && stores.remove(k, s)) s.memory.close())
    if (stores.isEmpty) ReportedMemory.unregister()
  }

  /** Lets go of everything. Queries that go on load what they need. */
  def dropAll(): Unit = all.keySet.map(_._1).foreach(drop)

  /**
   * Lets go of what no batch needs: shards of queries that have ended, and shards that others run now.
   *
   * @param asked
   *   queries that are meant
   * @param live
   *   those of them that run, with the batch that they are at
   */
  def dropUnneeded(asked: Set[String], live: Map[String, Long]): Unit = {
    (asked -- live.keySet).foreach(drop)
    // Every batch opens every shard somewhere. One that was not opened here for the batch before was opened elsewhere.
    for (((root, _), store) <- all; batchId <- live.get(root))
      store.loaded.foreach(_.forgetUnlessOpenedSince(batchId - 1))
  }
}
