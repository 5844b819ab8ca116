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

  /** Of each store of a region, of each shard that was told of. */
  def of(region: Long): Map[StoreKey, StateLoad] =
    byStore.iterator.collect { case ((r, store), of) if r == region => store -> of }.toMap

  /** Memory of each of the first `shards` shards over all stores of a region, 0 where it is not known. */
  def bytesOf(region: Long, shards: Int): Array[Long] = StateLoad.sum(of(region).values).of(shards).bytes

  /** Of every store. */
  def all: Map[StoreKey, StateLoad] = byStore.iterator.map { case ((_, store), of) => store -> of }.toMap
}
