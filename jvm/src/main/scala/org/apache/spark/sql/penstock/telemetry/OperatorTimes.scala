package org.apache.spark.sql.penstock.telemetry

import io.penstock.telemetry.TaskOperatorLoad

/**
 * Divides the time of one task's rows among the operators of its region, of which one calls another: whose turn it is
 * changes when a row is handed up, and when the next is asked for. Only while a row is timed; rows are all counted.
 *
 * @param operators
 *   ids
 */
final private class OperatorTimes(operators: Seq[Long], shards: Int) {
  import OperatorTimes.Nobody

  private val rows = Array.fill(operators.size)(new Array[Long](shards))
  private val shares = Array.fill(operators.size)(new Array[Double](shards))
  private val ofRow = new Array[Long](operators.size)
  private var turn = Nobody
  private var sinceNs = 0L

  /** Index of an operator; None for another region's. */
  def indexOf(operator: Long): Option[Int] = Some(operators.indexOf(operator)).filter(_ >= 0)

  def count(operator: Int, shard: Int): Unit = rows(operator)(shard) += 1

  /** An operator has got a row that is timed. */
  def begin(operator: Int, nowNs: Long): Unit = {
    turn = operator
    sinceNs = nowNs
  }

  /** It is an operator's turn; gives whose it was, or nobody's where nothing is timed. */
  def turnTo(operator: Int): Int = {
    val before = turn
    if (before != Nobody) {
      val now = System.nanoTime()
      ofRow(before) += now - sinceNs
      begin(operator, now)
    }
    before
  }

  /** A row of a shard has been timed, and stands for as many as its weight. */
  def end(shard: Int, weight: Double): Unit = {
    turnTo(Nobody)
    var o = 0
    while (o < ofRow.length) {
      shares(o)(shard) += ofRow(o) * weight
      ofRow(o) = 0L
      o += 1
    }
  }

  /**
   * What came of it.
   *
   * @param busyNs
   *   of each shard, over all operators
   */
  def loads(busyNs: Array[Long]): Seq[TaskOperatorLoad] = {
    val shards = busyNs.indices.filter(s => busyNs(s) > 0L || rows.exists(_(s) > 0L)).toArray
    operators.indices.map { o =>
      val times = shards.map(s => (busyNs(s) * shareOf(o, s)).toLong)
      TaskOperatorLoad(operators(o), shards, shards.map(rows(o)(_)), times)
    }
  }

  private def shareOf(operator: Int, shard: Int): Double = {
    val all = shares.map(_(shard)).sum
    if (all > 0.0) shares(operator)(shard) / all
    // No row of it was timed, but ends of others' groups were.
    else if (operator == rows.indexWhere(_(shard) > 0L)) 1.0
    else 0.0
  }
}

private object OperatorTimes {
  val Nobody: Int = -1
}
