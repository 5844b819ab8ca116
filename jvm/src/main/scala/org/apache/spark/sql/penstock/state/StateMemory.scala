package org.apache.spark.sql.penstock.state

import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.StateCommits

import io.penstock.conf.Settings
import io.penstock.state.memory.MemoryBound

/** The bound on the heap that state may hold in this JVM, as set by the application that runs in it. */
object StateMemory extends Logging {
  final private class Known(val env: SparkEnv, val limit: MemoryBound.Limit)

  private val Unbounded = MemoryBound.Limit(Long.MaxValue, "none", "a JVM without an application")
  @volatile private var known = new Known(null, Unbounded)

  val bound = new MemoryBound(ShardStores.memory, () => limit, () => reclaim())(describe)

  private def limit: MemoryBound.Limit = {
    val env = SparkEnv.get
    if (known.env ne env) known = new Known(env, if (env == null) Unbounded else limitOf(env))
    known.limit
  }

  private def limitOf(env: SparkEnv): MemoryBound.Limit = {
    val setting = Settings.StateMaxBytes
    val value = Settings.application(setting, env.conf.getAll.toMap)
    MemoryBound.Limit(
      value.bytes(Runtime.getRuntime.maxMemory),
      setting.kind.write(value),
      s"executor ${env.executorId}"
    )
  }

  private def reclaim(): Unit = {
    val before = ShardStores.memory.bytes
    val roots = ShardStores.all.keySet.map(_._1)
    try if (roots.nonEmpty) ShardStores.dropUnneeded(roots, StateCommits.live(roots))
    catch {
      case NonFatal(e) => logWarning("The driver did not answer which queries are running, so no state is dropped", e)
    }
    logInfo(
      s"State held $before bytes of heap, more than the limit of ${limit.bytes}. Dropped " +
        s"${before - ShardStores.memory.bytes} bytes that no batch needs"
    )
  }

  /** Describes the largest stores and their sizes, for error messages. */
  private def describe: String = {
    val stores = ShardStores.all.toSeq.sortBy(-_._2.memory.bytes)
    val shards = stores.map(_._2.loaded.count(_.isHeld)).sum
    val largest = stores.take(3).map { case ((root, key), store) =>
      s"${store.memory.bytes} bytes in operator ${key.operatorId}, store ${key.storeName} of $root"
    }
    s"$shards shards of ${stores.size} stores${if (largest.isEmpty) "" else largest.mkString(", the largest ", "; ", "")}"
  }
}
