package org.apache.spark.sql.penstock.state

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicReferenceArray

import io.penstock.state.format.StoreKey

/** The shards of one store in this JVM. */
final class ShardStore(shardCount: Int) {
  private val slots = new AtomicReferenceArray[ShardSlot](shardCount)
  @volatile var lastUsedNs: Long = System.nanoTime()

  def slot(shard: Int): ShardSlot = {
    val s = slots.get(shard)
    if (s != null) s
    else {
      slots.compareAndSet(shard, null, new ShardSlot(shard))
      slots.get(shard)
    }
  }

  def loaded: Iterator[ShardSlot] = Iterator.range(0, slots.length()).map(slots.get).filter(_ != null)
}

/**
 * All shards that this JVM holds, by query, operator and store name. Content is identified by lineage, so that a query
 * that is started again may go on with what its last run left here.
 */
object ShardStores {
  private val stores = new ConcurrentHashMap[(String, StoreKey), ShardStore]()

  def get(stateRoot: String, store: StoreKey, shardCount: Int): ShardStore = {
    val s = stores.computeIfAbsent((stateRoot, store), _ => new ShardStore(shardCount))
    s.lastUsedNs = System.nanoTime()
    s
  }

  /** Queries with shards here that nobody has opened for this long. */
  def idle(olderThanNs: Long): Set[String] = {
    val now = System.nanoTime()
    val roots = scala.collection.mutable.Map[String, Boolean]()
    stores.forEach { (k, s) =>
      roots(k._1) = roots.getOrElse(k._1, true) && now - s.lastUsedNs > olderThanNs
    }
    roots.collect { case (root, true) => root }.toSet
  }

  def drop(stateRoot: String): Unit = stores.keySet().removeIf(_._1 == stateRoot): Unit

  def memoryBytes: Long = {
    var sum = 0L
    stores.forEach((_, s) => sum += s.loaded.map(_.memoryBytes).sum)
    sum
  }
}
