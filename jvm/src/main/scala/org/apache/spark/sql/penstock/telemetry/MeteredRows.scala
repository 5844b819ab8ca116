package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.penstock.sharding.ShardHash

/** Passes rows on, and times what happens between a row and the question for the next. */
final private class MeteredRows(
    rows: Iterator[InternalRow],
    keys: Seq[Expression],
    isInput: Boolean,
    hash: ShardHash,
    meter: TaskMeter,
    reportKeys: Boolean
) extends Iterator[InternalRow] {
  private val spacing = meter.spacing()
  private lazy val audible = meter.isOfThisThread
  private lazy val text = new KeyText(keys, reportKeys)
  private var owns = false
  private var timed: InternalRow = _
  private var timedHash = 0
  private var sinceNs = 0L

  override def hasNext: Boolean = {
    if (owns) close()
    rows.hasNext
  }

  override def next(): InternalRow = {
    if (owns) close()
    val row = rows.next()
    owns = audible && meter.enter()
    if (owns && spacing.takes()) {
      timed = row
      timedHash = hash.ofKey(row)
      sinceNs = System.nanoTime()
    }
    row
  }

  private def close(): Unit = {
    if (timed != null) {
      val weight = spacing.weight
      val (row, key) = (timed, timedHash)
      val ns = spacing.timed(System.nanoTime() - sinceNs)
      meter.book(key, ns, if (isInput) weight.toLong else 0L)(text.of(row, key))
      timed = null
    }
    meter.leave()
    owns = false
  }
}

object MeteredRows {

  /** The input of the running task, timed and counted. Arguments as for [[within]]. */
  def input(rows: Iterator[InternalRow], keys: Seq[Expression], load: RegionLoad): Iterator[InternalRow] =
    metered(rows, keys, isInput = true, load)

  /**
   * Rows within the running task, timed.
   *
   * @param keys
   *   bound expressions whose hash is a row's shard
   * @param load
   *   of the task's region, which gets what is measured
   */
  def within(rows: Iterator[InternalRow], keys: Seq[Expression], load: RegionLoad): Iterator[InternalRow] =
    metered(rows, keys, isInput = false, load)

  private def metered(rows: Iterator[InternalRow], keys: Seq[Expression], isInput: Boolean, load: RegionLoad) =
    new MeteredRows(
      rows,
      keys,
      isInput,
      ShardHash(keys, load.layout),
      TaskMeter.of(TaskContext.get(), load),
      load.reportKeys
    )
}
