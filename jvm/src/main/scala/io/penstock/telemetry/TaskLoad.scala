package io.penstock.telemetry

/**
 * Times of the sampled rows of several shards.
 *
 * @param samples
 *   Number of readings of each shard
 * @param rowNs
 *   Mean time of a row of each shard, over all steps of its processing
 * @param deviationNs
 *   Standard deviation of the time of rows of the same shard
 */
final case class RowSamples(samples: Array[Int], rowNs: Array[Double], deviationNs: Double) {

  /** Mean time of a timed row. */
  def meanNs: Double = samples.indices.iterator.map(i => samples(i) * rowNs(i)).sum / math.max(1, samples.sum)
}

/**
 * Measurements of a task.
 *
 * @param shards
 *   Shards whose rows took time, ascending
 * @param busyNs
 *   Time of the rows of each of `shards`, estimated from the rows that were timed
 * @param timed
 *   Times of the sampled rows of each of `shards`
 * @param totalNs
 *   Time from the read of the first row to the end of the task, including waiting
 * @param waitNs
 *   Part of `totalNs` in which the task waited for input of other tasks or for its commit to be recorded
 * @param interruptedNs
 *   Part of `totalNs` in which the thread was kept from running, see [[Interruptions]]
 * @param heavyKeys
 *   Keys with a large share of the task's time or rows. No other task has rows of them
 * @param operators
 *   Load of each operator, if there are several
 */
final case class TaskLoad(
    shards: Array[Int],
    busyNs: Array[Long],
    timed: RowSamples,
    totalNs: Long,
    waitNs: Long,
    interruptedNs: Long,
    heavyKeys: Seq[KeyLoad],
    operators: Seq[TaskOperatorLoad]
) {

  /** Time of the task without waiting and interruptions. */
  def workNs: Long = math.max(0L, totalNs - waitNs - interruptedNs)
}

/**
 * Times of the sampled rows of each shard in a batch.
 *
 * @param samples
 *   Number of readings of each shard
 * @param rowNs
 *   Mean time of a row of each shard; undefined for a shard without samples
 */
final case class ShardSamples(samples: Array[Int], rowNs: Array[Double])

object ShardSamples {

  /** Samples of all tasks of a region. */
  def of(tasks: Iterable[TaskLoad], shardCount: Int): ShardSamples = {
    val all = ShardSamples(new Array[Int](shardCount), new Array[Double](shardCount))
    for (t <- tasks; i <- t.shards.indices) {
      all.samples(t.shards(i)) = t.timed.samples(i)
      all.rowNs(t.shards(i)) = t.timed.rowNs(i)
    }
    all
  }
}

object TaskLoad {

  /** Time of each shard, over all tasks of a region. */
  def busyOfShards(tasks: Iterable[TaskLoad], shardCount: Int): Array[Long] = {
    val sum = new Array[Long](shardCount)
    tasks.foreach(t => t.shards.indices.foreach(i => sum(t.shards(i)) += t.busyNs(i)))
    sum
  }
}
