package org.apache.spark.sql.penstock.commit

import scala.collection.concurrent.TrieMap

import io.penstock.state.format.StoreKey

/** Memory that the state of shards takes, as tasks told it last. Who asks waits for nobody. */
final private class StateSizes {
  private val bytes = TrieMap.empty[(Long, StoreKey), Array[Long]]

  def told(region: Long, commit: StoreCommit): Unit = {
    val most = commit.shards.maxOption.fold(0)(_ + 1)
    val of = bytes.get((region, commit.store)).filter(_.length >= most) match {
      case Some(known) => known
      case None =>
        val longer = bytes.get((region, commit.store)).fold(new Array[Long](most))(java.util.Arrays.copyOf(_, most))
        bytes((region, commit.store)) = longer
        longer
    }
    commit.shards.indices.foreach(i => of(commit.shards(i)) = commit.stateBytes(i))
  }

  /** Of each shard that was told of, over all stores of a region. */
  def of(region: Long): Array[Long] =
    bytes.iterator
      .collect { case ((r, _), of) if r == region => of }
      .foldLeft(Array.emptyLongArray)((sum, of) => sum.zipAll(of, 0L, 0L).map { case (a, b) => a + b })
}
