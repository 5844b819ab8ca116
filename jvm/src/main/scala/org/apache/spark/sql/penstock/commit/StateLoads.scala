package org.apache.spark.sql.penstock.commit

import scala.collection.concurrent.TrieMap

import io.penstock.state.format.StoreKey
import io.penstock.telemetry.StateLoad

/** What the state of shards amounts to, as tasks told it last. Who asks waits for nobody. */
final private class StateLoads {
  private val byStore = TrieMap.empty[(Long, StoreKey), StateLoad]

  def told(region: Long, commit: StoreCommit): Unit = {
    val most = commit.shards.maxOption.fold(0)(_ + 1)
    val known = byStore.getOrElse((region, commit.store), StateLoad.Empty)
    val all = if (known.bytes.length >= most) known else known.of(most)
    byStore((region, commit.store)) = all
    commit.shards.indices.foreach { i =>
      val shard = commit.shards(i)
      all.bytes(shard) = commit.state.bytes(i)
      all.keys(shard) = commit.state.keys(i)
      all.operations(shard) = commit.state.operations(i)
    }
  }

  /** Of each shard that was told of, over all stores of a region. */
  def of(region: Long): StateLoad =
    byStore.iterator.collect { case ((r, _), of) if r == region => of }.foldLeft(StateLoad.Empty)(_ + _)
}
