package org.apache.spark.sql.penstock.state

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicReferenceArray

import scala.jdk.CollectionConverters._

import io.penstock.context.{Component, ComponentKey, ExecutorContext}
import io.penstock.sharding.Layout
import io.penstock.state.format.StoreKey
import io.penstock.state.memory.MemoryAccount

/**
 * The shards of one store in this JVM.
 *
 * @param baseShards
 *   S, the number of shards without those of pinned hashes
 * @param total
 *   counts the heap bytes of all stores
 */
final class ShardStore(val baseShards: Int, total: MemoryAccount) {

  /** Counts the heap bytes of the shards, and of the deltas that attempts have prepared. */
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

  /** Whether there is a slot with that number, used or not. */
  def has(shard: Int): Boolean = shard >= 0 && shard < slots.length

  def loaded: Iterator[ShardSlot] = Iterator.range(0, slots.length()).map(slots.get).filter(_ != null)
}

/**
 * All shards that this executor holds, by query, operator and store name. Content is identified by lineage, so a query
 * that is started again can use what its last run left here.
 */
final class ShardStores extends Component {

  /** Counts the heap bytes of all shards, and of uncommitted changes of tasks. */
  val memory = new MemoryAccount()

  private val stores = new ConcurrentHashMap[(String, StoreKey), ShardStore]()
  private val reported = new ReportedMemory(memory)
  @volatile private var closed = false

  /**
   * The store, which is made if it is not there.
   *
   * @throws java.lang.IllegalStateException
   *   if the executor ends
   */
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
    s.lastUsedNs = System.nanoTime()
    reported.register()
    if (closed) {
      // The store was added after `close` had dropped the others.
      dropAll()
      throw new IllegalStateException(s"this executor ends, so the state in $stateRoot is not opened")
    }
    s
  }

  /** The store, if this executor has it. */
  def find(stateRoot: String, store: StoreKey): Option[ShardStore] = Option(stores.get((stateRoot, store)))

  /** Every store, by query and key. */
  def all: Map[(String, StoreKey), ShardStore] = stores.asScala.toMap

  /** Queries whose shards here have not been used for this long. */
  def idle(olderThanNs: Long): Set[String] = {
    val now = System.nanoTime()
    val roots = scala.collection.mutable.Map[String, Boolean]()
    stores.forEach { (k, s) =>
      roots(k._1) = roots.getOrElse(k._1, true) && now - s.lastUsedNs > olderThanNs
    }
    roots.collect { case (root, true) => root }.toSet
  }

  /** Drops all shards of a query. */
  def drop(stateRoot: String): Unit = {
    stores.forEach((k, s) => if (k._1 == stateRoot && stores.remove(k, s)) s.memory.close())
    if (stores.isEmpty) reported.unregister()
  }

  /** Drops all shards. Queries that go on load what they need. */
  def dropAll(): Unit = all.keySet.map(_._1).foreach(drop)

  override def held: Map[String, Long] = Map("stores" -> stores.size.toLong, "bytes" -> memory.bytes)

  /** Drops all shards, and makes no store any more. */
  override def close(): Unit = {
    closed = true
    dropAll()
  }

  /**
   * Drops shards that no batch needs: those of queries that have ended, and those that other executors run now.
   *
   * @param asked
   *   queries whose shards may be dropped
   * @param live
   *   those of `asked` that are running, each with the batch that it is at
   */
  def dropUnneeded(asked: Set[String], live: Map[String, Long]): Unit = {
    (asked -- live.keySet).foreach(drop)
    // Every batch opens every shard on some executor: one not opened here for the previous batch was opened elsewhere.
    for (((root, _), store) <- all; batchId <- live.get(root))
      store.loaded.foreach(_.forgetUnlessOpenedSince(batchId - 1))
  }
}

object ShardStores extends ComponentKey[ShardStores](ExecutorContext)
