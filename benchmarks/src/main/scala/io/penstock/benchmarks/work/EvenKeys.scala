package io.penstock.benchmarks.work

/** The same number of keys in every shard, and the same number of rows of every key: nothing to balance, for anybody. */
final case class EvenKeys(shards: Int, keysOfShard: Int) extends Keys {
  @transient private lazy val keys: Array[Long] = {
    val found = Array.fill(shards)(0)
    Iterator
      .from(0)
      .map(_.toLong)
      .filter { key =>
        val shard = WhoRan.shard(key, shards)
        found(shard) += 1
        found(shard) <= keysOfShard
      }
      .take(shards * keysOfShard)
      .toArray
  }

  override def key(row: Long): Long = keys((row % keys.length).toInt)
}
