package io.penstock.telemetry

/**
 * What a task measured.
 *
 * @param shards
 *   that were busy, ascending
 * @param busyNs
 *   time of the rows of each of `shards`, estimated from the rows that were timed
 * @param totalNs
 *   from the first row's read to the task's end, waiting included
 * @param waitNs
 *   of it, waiting for input of other tasks
 * @param heavyKeys
 *   keys that had much of the task's time or rows: no other task has rows of them
 * @param operators
 *   what each operator had of it, where there are several
 */
final case class TaskLoad(
    shards: Array[Int],
    busyNs: Array[Long],
    totalNs: Long,
    waitNs: Long,
    heavyKeys: Seq[KeyLoad],
    operators: Seq[TaskOperatorLoad]
) {

  /** Its time, waiting left out. */
  def workNs: Long = math.max(0L, totalNs - waitNs)
}

object TaskLoad {

  /** Time per shard over all tasks of a region. */
  def busyOfShards(tasks: Iterable[TaskLoad], shardCount: Int): Array[Long] = {
    val sum = new Array[Long](shardCount)
    tasks.foreach(t => t.shards.indices.foreach(i => sum(t.shards(i)) += t.busyNs(i)))
    sum
  }
}
