package io.penstock.telemetry

/**
 * What one task measured of one operator.
 *
 * @param operator
 *   its id
 * @param shards
 *   that had rows or time, in this operator or another of the region, ascending
 * @param rows
 *   that came into it, of each of `shards`
 * @param busyNs
 *   time of these that the operator took, of each of `shards`
 */
final case class TaskOperatorLoad(operator: Long, shards: Array[Int], rows: Array[Long], busyNs: Array[Long])

/**
 * What one operator did in a batch; each array has a number for each shard of its region.
 *
 * @param rows
 *   that came into it
 * @param busyNs
 *   time of these that the operator took: what was booked to a shard is divided among its operators
 */
final case class OperatorLoad(rows: Array[Long], busyNs: Array[Long])

object OperatorLoad {

  /** By operator, over all tasks of a region. */
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
