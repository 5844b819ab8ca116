package io.penstock.benchmarks.work

/**
 * Uniform keys, one of which becomes hot, and then another instead of it, again and again: each time is a run of its own,
 * with keys of its own, and begins with some batches without a hot key.
 *
 * @param keys
 *   how many different ones
 * @param batchRows
 *   rows of a batch
 * @param share
 *   of the rows, that have the hot key
 * @param neighbourShare
 *   of the rows, that have another key throughout the run. Where it is not 0, that key and the two hot ones are of one shard
 */
final case class HotKeys(keys: Int, batchRows: Long, share: Double, neighbourShare: Double, shards: Int) extends Keys {
  import HotKeys._

  @transient private lazy val ofShard: Array[Array[Long]] = {
    val all = (0L until keys.toLong).groupBy(WhoRan.shard(_, shards))
    Array.tabulate(shards)(shard => all.getOrElse(shard, Nil).toArray)
  }

  override def key(row: Long): Long = {
    val batch = row / batchRows
    val run = batch / RunBatches
    val drawn = Zipf.drawn(row)
    val home = ofShard(shardOf(run, 0))
    if (drawn < neighbourShare) home(0)
    else if (drawn < neighbourShare + share) hot(run, batch).getOrElse(any(row))
    else any(row)
  }

  private def any(row: Long) = Math.floorMod(Zipf.mix(~row), keys.toLong)

  private def hot(run: Long, batch: Long): Option[Long] = change(batch).map { c =>
    val second = (c % 2).toInt
    if (neighbourShare > 0) ofShard(shardOf(run, 0))(1 + second) else ofShard(shardOf(run, second))(0)
  }

  /** Different ones for the two hot keys. */
  private def shardOf(run: Long, second: Int): Int =
    Math.floorMod(Zipf.mix(run) + second * shards / 2, shards.toLong).toInt
}

object HotKeys {

  /** Batches without a hot key, then with the first one, then with the second. */
  private val QuietBatches = 2L
  private val HotBatches = 4L

  /** Batches of a run. */
  val RunBatches: Long = QuietBatches + 2 * HotBatches

  /** The number of the change that a batch follows, two in a run; None where no key is hot. */
  def change(batch: Long): Option[Long] =
    Some(batch % RunBatches - QuietBatches).filter(_ >= 0).map(in => 2 * (batch / RunBatches) + in / HotBatches)

  /** Batches from the change to this one. */
  def sinceChange(batch: Long): Long = (batch % RunBatches - QuietBatches) % HotBatches
}
