package org.apache.spark.sql.penstock.commit

import scala.collection.concurrent.TrieMap

import io.penstock.state.format.StoreKey

/** Memory that the state of shards takes, as tasks told it last. Who asks waits for nobody. */
final private class StateSizes(shardCount: Int) {
  private val bytes = TrieMap.empty[(Long, StoreKey), Array[Long]]

  def told(region: Long, commit: StoreCommit): Unit = {
    val of = bytes.getOrElseUpdate((region, commit.store), new Array[Long](shardCount))
    commit.shards.indices.foreach(i => of(commit.shards(i)) = commit.stateBytes(i))
  }

  /** Of each shard, over all stores of a region. */
  def of(region: Long): Array[Long] = {
    val sum = new Array[Long](shardCount)
    bytes.foreach { case ((r, _), of) => if (r == region) sum.indices.foreach(s => sum(s) += of(s)) }
    sum
  }
}
