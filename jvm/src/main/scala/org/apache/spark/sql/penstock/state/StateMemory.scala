package org.apache.spark.sql.penstock.state

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import io.penstock.context.{Component, ComponentKey, ExecutorContext}
import io.penstock.state.memory.MemoryBound

/**
 * The bound on the heap that state may hold in this executor.
 *
 * @param stores
 *   the shards of this executor
 * @param limit
 *   the limit that the application sets
 * @param live
 *   returns those of the given queries that a run works on, each with its batch
 */
final class StateMemory(stores: ShardStores, limit: MemoryBound.Limit, live: Set[String] => Map[String, Long])
    extends Component
    with Logging {
  val bound = new MemoryBound(stores.memory, () => limit, () => reclaim())(describe)

  private def reclaim(): Unit = {
    val before = stores.memory.bytes
    val roots = stores.all.keySet.map(_._1)
    try if (roots.nonEmpty) stores.dropUnneeded(roots, live(roots))
    catch {
      case NonFatal(e) => logWarning("The driver did not answer which queries are running, so no state is dropped", e)
    }
    logInfo(
      s"State held $before bytes of heap, more than the limit of ${limit.bytes}. Dropped " +
        s"${before - stores.memory.bytes} bytes that no batch needs"
    )
  }

  /** Describes the largest stores and their sizes, for error messages. */
  private def describe: String = {
    val bySize = stores.all.toSeq.sortBy(-_._2.memory.bytes)
    val shards = bySize.map(_._2.loaded.count(_.isHeld)).sum
    val largest = bySize.take(3).map { case ((root, key), store) =>
      s"${store.memory.bytes} bytes in operator ${key.operatorId}, store ${key.storeName} of $root"
    }
    s"$shards shards of ${bySize.size} stores${if (largest.isEmpty) "" else largest.mkString(", the largest ", "; ", "")}"
  }

  /** Nothing: the state itself is in [[ShardStores]]. */
  override def held: Map[String, Long] = Map.empty

  override def close(): Unit = ()
}

object StateMemory extends ComponentKey[StateMemory](ExecutorContext)
