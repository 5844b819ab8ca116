package io.penstock.benchmarks.work

/**
 * Uniform keys with a hot key that changes. Batches are divided into runs. A run begins with batches without a hot key,
 * followed by batches with one hot key and batches with another. Each run has other hot keys.
 *
 * @param keys
 *   number of distinct keys
 * @param batchRows
 *   number of rows in a batch
 * @param share
 *   share of the rows that have the hot key
 * @param neighbourShare
 *   share of the rows that have one other key throughout the run. If it is not 0, that key and both hot keys belong to
 *   the same shard
 */
final case class HotKeys(keys: Int, batchRows: Long, share: Double, neighbourShare: Double, shards: Int) extends Keys {
  import HotKeys._

  @transient private lazy val keysByShard: Array[Array[Long]] = {
    val all = (0L until keys.toLong).groupBy(WhoRan.shard(_, shards))
    Array.tabulate(shards)(shard => all.getOrElse(shard, Nil).toArray)
  }

  override def key(row: Long): Long = {
    val batch = row / batchRows
    val run = batch / RunBatches
    val drawn = Zipf.drawn(row)
    val neighbours = keysByShard(shardOf(run, 0))
    if (drawn < neighbourShare) neighbours(0)
    else if (drawn < neighbourShare + share) hot(run, batch).getOrElse(any(row))
    else any(row)
  }

  private def any(row: Long) = Math.floorMod(Zipf.mix(~row), keys.toLong)

  private def hot(run: Long, batch: Long): Option[Long] = change(batch).map { c =>
    val second = (c % 2).toInt
    if (neighbourShare > 0) keysByShard(shardOf(run, 0))(1 + second) else keysByShard(shardOf(run, second))(0)
  }

  /** Shard of a hot key of a run, which is another one for the second hot key. */
  private def shardOf(run: Long, second: Int): Int =
    Math.floorMod(Zipf.mix(run) + second * shards / 2, shards.toLong).toInt
}

object HotKeys {

  /** Number of batches without a hot key at the start of a run. */
  private val QuietBatches = 2L

  /** Number of batches with each of the two hot keys. */
  private val HotBatches = 4L

  /** Number of batches of a run. */
  val RunBatches: Long = QuietBatches + 2 * HotBatches

  /** Number of the last change before or in a batch. There are two changes in a run. None if no key is hot. */
  def change(batch: Long): Option[Long] =
    Some(batch % RunBatches - QuietBatches).filter(_ >= 0).map(in => 2 * (batch / RunBatches) + in / HotBatches)

  /** Number of batches from the change to this batch. */
  def sinceChange(batch: Long): Long = (batch % RunBatches - QuietBatches) % HotBatches
}
