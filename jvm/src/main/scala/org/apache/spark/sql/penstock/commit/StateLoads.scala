package org.apache.spark.sql.penstock.commit

import scala.collection.concurrent.TrieMap

import io.penstock.state.format.StoreKey
import io.penstock.telemetry.StateLoad

/** Newest load of each shard that tasks reported. Readers never block. */
final private class StateLoads {
  private val byStore = TrieMap.empty[(Long, StoreKey), StateLoad]

  /** Records the loads that a commit reports. */
  def record(region: Long, commit: StoreCommit): Unit = {
    val shardCount = commit.shards.maxOption.fold(0)(_ + 1)
    val known = byStore.getOrElse((region, commit.store), StateLoad.Empty)
    val all = if (known.bytes.length >= shardCount) known else known.of(shardCount)
    byStore((region, commit.store)) = all
    commit.shards.indices.foreach { i =>
      val shard = commit.shards(i)
      all.bytes(shard) = commit.state.bytes(i)
      all.keys(shard) = commit.state.keys(i)
      all.operations(shard) = commit.state.operations(i)
    }
  }

  /** Load of each store of a region; 0 for shards that were not reported. */
  def ofRegion(region: Long): Map[StoreKey, StateLoad] =
    byStore.iterator.collect { case ((r, store), load) if r == region => store -> load }.toMap

  /** Memory of each of the first `shards` shards, summed over all stores of a region; 0 if unknown. */
  def bytesOf(region: Long, shards: Int): Array[Long] = StateLoad.sum(ofRegion(region).values).of(shards).bytes

  /** Load of every store of all regions. */
  def all: Map[StoreKey, StateLoad] = byStore.iterator.map { case ((_, store), load) => store -> load }.toMap
}
