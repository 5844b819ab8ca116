package org.apache.spark.sql.penstock.state

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.commit.{Commits, QueryCommits, StoreCommit, TaskCommitted}
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.sql.types.StructType

import io.penstock.state.engine.ShardState
import io.penstock.state.format._
import io.penstock.state.memory.SharedBytes
import io.penstock.telemetry.{StateLoad, StoreTimings}

/**
 * The provider without a planner, for tests of the store contract. Each partition is a query with a single shard,
 * committed by the real commit coordinator in this JVM. Engine, files and commits are the real ones.
 */
class StandaloneProvider extends ShardedStateStoreProvider {
  private var hadoopConf: Configuration = _

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConfs: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]
  ): Unit = {
    this.hadoopConf = hadoopConf
    super.init(
      stateStoreId,
      keySchema,
      valueSchema,
      keyStateEncoderSpec,
      useColumnFamilies,
      storeConfs,
      hadoopConf,
      useMultipleValuesPerKey,
      stateSchemaProvider
    )
  }

  override protected def scope(version: Long): StoreScope =
    new StandaloneScope(stateStoreId, version, hadoopConf)
}

object StandaloneProvider {

  /** The shards of all stores of this JVM. */
  val stores = new ShardStores
}

final class StandaloneScope(id: StateStoreId, version: Long, hadoopConf: Configuration) extends StoreScope {
  private val root = id.storeCheckpointLocation().toString
  private val directory = new StateDirectory(root, hadoopConf)
  private val key = StoreKey(id.operatorId, id.storeName)
  private val region =
    RegionSpec(
      id.operatorId,
      single = true,
      Seq(OperatorLease(id.operatorId, OperatorKind.WholeKey, Seq(id.storeName)))
    )
  private val commits = new QueryCommits(UUID.randomUUID(), root, 1, hadoopConf)
  private val lease =
    commits.open(BatchSpec(commits.runId, root, version, 1, Seq(region)))(Map.empty)(id.operatorId)
  private val base = lease.base.stores(key).lineage(0)
  private val store = StandaloneProvider.stores.get(root, key, 1)
  private val slot = store.slot(0)

  override def shards: Array[Int] = Array(0)
  override def shardCount: Int = 1
  override def describe: String = s"$id, version $version"
  override def extractor(
      name: String,
      keySchema: StructType,
      spec: KeyStateEncoderSpec,
      prefixedMain: => Boolean
  ): ShardExtractor = new ShardExtractor.Fixed(0)

  override def open(timings: StoreTimings): Array[ShardState] = {
    def load: ShardSlot.Loaded = {
      timings.loadedShards += 1
      var l: ShardSlot.Loaded = null
      val m = directory.readManifest(version - 1, lease.base.generation)
      new ShardLoader(directory).load(m, key, Seq(0))((_, x) => l = x)
      l
    }
    held = Some(slot.open(base, version)(load))
    held.map(_.content).toArray
  }

  override def close(): Unit = held.foreach(_.close())

  private var held: Option[ShardSlot.Opened] = None

  override def commit(changes: ByteSink, sections: Seq[Section], keys: Array[Long], operations: Array[Long]): Unit = {
    val lineage = UUID.randomUUID()
    Commits.commit(
      commits,
      TaskCommitted(
        commits.runId,
        version,
        Commits.attempt(),
        "executor_localhost_driver",
        Map.empty,
        lineage,
        changes.toByteArray,
        0L,
        Seq(StoreCommit(key, shards, StateLoad(shards.map(_ => 0L), keys, operations), 0L, Map.empty, sections.toArray))
      )
    )
    val kept = new SharedBytes(changes.array, store.memory)
    sections.foreach(s => slot.prepare(lineage, base, kept, s.offset, s.length))
  }
}
