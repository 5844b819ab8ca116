package io.penstock.telemetry

/**
 * What the rows of shards took, by those that were timed.
 *
 * @param samples
 *   readings of each shard
 * @param rowNs
 *   time of a row of each shard, over all steps that a row takes
 * @param deviationNs
 *   standard deviation of the time of rows of the same shard
 */
final case class RowSamples(samples: Array[Int], rowNs: Array[Double], deviationNs: Double) {

  /** Time of a row that was timed, on average. */
  def meanNs: Double = samples.indices.iterator.map(i => samples(i) * rowNs(i)).sum / math.max(1, samples.sum)
}

/**
 * What a task measured.
 *
 * @param shards
 *   that were busy, ascending
 * @param busyNs
 *   time of the rows of each of `shards`, estimated from the rows that were timed
 * @param timed
 *   what rows of each of `shards` took
 * @param totalNs
 *   from the first row's read to the task's end, waiting included
 * @param waitNs
 *   of it, waiting for input of other tasks, and for its commit to be on record
 * @param interruptedNs
 *   of it, in which the thread was kept from running: see [[Interruptions]]
 * @param heavyKeys
 *   keys that had much of the task's time or rows: no other task has rows of them
 * @param operators
 *   what each operator had of it, where there are several
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

  /** Its time, waiting and interruptions left out. */
  def workNs: Long = math.max(0L, totalNs - waitNs - interruptedNs)
}

/**
 * What rows of each shard took in a batch, by those that were timed.
 *
 * @param samples
 *   readings of each shard
 * @param rowNs
 *   time of a row of each shard; where there are no samples it says nothing
 */
final case class ShardSamples(samples: Array[Int], rowNs: Array[Double])

object ShardSamples {

  /** Of all tasks of a region. */
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

  /** Time per shard over all tasks of a region. */
  def busyOfShards(tasks: Iterable[TaskLoad], shardCount: Int): Array[Long] = {
    val sum = new Array[Long](shardCount)
    tasks.foreach(t => t.shards.indices.foreach(i => sum(t.shards(i)) += t.busyNs(i)))
    sum
  }
}
