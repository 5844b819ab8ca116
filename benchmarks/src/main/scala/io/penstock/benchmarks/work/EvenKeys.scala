package io.penstock.benchmarks.work

/** Keys with equal loads: every shard has the same number of keys, and every key the same number of rows. */
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
