package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.penstock.sharding.ShardHash

/**
 * Passes rows on, and times what happens between a row and the question for the next.
 *
 * With the first row operators open what they need, and often the same key is the first of every batch, because rows were
 * sorted: so the first one is booked with no more than the mean of those after it.
 */
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
  private var isFirst = true
  private var first: Option[FirstRow] = None
  private var restNs = 0.0
  private var restRows = 0L

  override def hasNext: Boolean = {
    if (owns) close()
    val more = rows.hasNext
    if (!more) bookFirst()
    more
  }

  override def next(): InternalRow = {
    if (owns) close()
    val row = rows.next()
    owns = audible && meter.enter()
    if (owns && (isFirst || spacing.takes())) {
      timed = row
      timedHash = hash.ofKey(row)
      sinceNs = System.nanoTime()
    }
    row
  }

  private def close(): Unit = {
    if (timed != null) {
      val ns = System.nanoTime() - sinceNs
      if (isFirst) {
        first = Some(FirstRow(timedHash, text.of(timed, timedHash), ns))
        isFirst = false
      } else {
        val weight = spacing.weight
        val (row, key, booked) = (timed, timedHash, spacing.timed(ns))
        restNs += booked
        restRows += weight
        book(key, booked, weight.toLong)(text.of(row, key))
      }
      timed = null
    }
    meter.leave()
    owns = false
  }

  private def bookFirst(): Unit = {
    first.foreach { f =>
      val ns = if (restRows > 0) math.min(f.ns, (restNs / restRows).toLong) else f.ns
      book(f.hash, ns, 1L)(f.text)
    }
    first = None
  }

  private def book(key: Int, ns: Long, weight: Long)(text: => String): Unit =
    meter.book(key, ns, if (isInput) weight else 0L)(text)
}

/** What waits for the mean of the rows after it. */
final private case class FirstRow(hash: Int, text: String, ns: Long)

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
