package org.apache.spark.sql.penstock.telemetry

import io.penstock.telemetry.TaskOperatorLoad

/**
 * Divides the time of one task's rows among the operators of its region. Operators call each other, so the turn changes
 * when a row is handed up and when the next row is requested. Turns are timed only while a row is timed; all rows are
 * counted.
 *
 * @param operators
 *   Ids of the operators
 * @param shards
 *   Number of shards
 */
final private class OperatorTimes(operators: Seq[Long], shards: Int) {
  import OperatorTimes.NoOperator

  private val rows = Array.fill(operators.size)(new Array[Long](shards))
  private val shares = Array.fill(operators.size)(new Array[Double](shards))
  private val rowNs = new Array[Long](operators.size)
  private var turn = NoOperator
  private var sinceNs = 0L

  /** Index of an operator; None if it belongs to another region. */
  def indexOf(operator: Long): Option[Int] = Some(operators.indexOf(operator)).filter(_ >= 0)

  def count(operator: Int, shard: Int): Unit = rows(operator)(shard) += 1

  /** An operator has received a row that is timed. */
  def begin(operator: Int, nowNs: Long): Unit = {
    turn = operator
    sinceNs = nowNs
  }

  /** Starts the turn of an operator. Returns the operator whose turn it was, or `NoOperator` if no row is timed. */
  def turnTo(operator: Int): Int = {
    val before = turn
    if (before != NoOperator) {
      val now = System.nanoTime()
      rowNs(before) += now - sinceNs
      begin(operator, now)
    }
    before
  }

  /** Ends the timing of a row of a shard. The row stands for `weight` rows. */
  def end(shard: Int, weight: Double): Unit = {
    turnTo(NoOperator)
    var o = 0
    while (o < rowNs.length) {
      shares(o)(shard) += rowNs(o) * weight
      rowNs(o) = 0L
      o += 1
    }
  }

  /**
   * Returns the load of each operator.
   *
   * @param busyNs
   *   Busy time of each shard, over all operators
   */
  def loads(busyNs: Array[Long]): Seq[TaskOperatorLoad] = {
    val shards = busyNs.indices.filter(s => busyNs(s) > 0L || rows.exists(_(s) > 0L)).toArray
    operators.indices.map { o =>
      val times = shards.map(s => (busyNs(s) * shareOf(o, s)).toLong)
      TaskOperatorLoad(operators(o), shards, shards.map(rows(o)(_)), times)
    }
  }

  private def shareOf(operator: Int, shard: Int): Double = {
    val total = shares.map(_(shard)).sum
    if (total > 0.0) shares(operator)(shard) / total
    // No time of the shard was divided: charge all of it to the first operator that had rows of the shard.
    else if (operator == rows.indexWhere(_(shard) > 0L)) 1.0
    else 0.0
  }
}

private object OperatorTimes {
  val NoOperator: Int = -1
}
