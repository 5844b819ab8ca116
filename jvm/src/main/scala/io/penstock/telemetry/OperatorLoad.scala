package io.penstock.telemetry

/**
 * Measurements of one operator in one task.
 *
 * @param operator
 *   Id of the operator
 * @param shards
 *   Shards with rows or time in any operator of the region, ascending
 * @param rows
 *   Input rows of the operator, for each of `shards`
 * @param busyNs
 *   Time that the operator spent on these rows, for each of `shards`
 */
final case class TaskOperatorLoad(operator: Long, shards: Array[Int], rows: Array[Long], busyNs: Array[Long])

/**
 * Measurements of one operator in a batch. Each array has one entry for each shard of the region.
 *
 * @param rows
 *   Input rows of the operator
 * @param busyNs
 *   Time that the operator spent on these rows. The times of all operators add up to the time of the shard
 */
final case class OperatorLoad(rows: Array[Long], busyNs: Array[Long])

object OperatorLoad {

  /** Load of each operator, summed over all tasks of a region. */
  def sum(tasks: Iterable[TaskLoad], shards: Int): Map[Long, OperatorLoad] =
    tasks.flatMap(_.operators).groupBy(_.operator).map { case (operator, loads) =>
      val sum = OperatorLoad(new Array[Long](shards), new Array[Long](shards))
      loads.foreach(load =>
        load.shards.indices.foreach { i =>
          sum.rows(load.shards(i)) += load.rows(i)
          sum.busyNs(load.shards(i)) += load.busyNs(i)
        }
      )
      operator -> sum
    }
}
