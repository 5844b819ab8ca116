package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.penstock.sharding.ShardHash

import io.penstock.telemetry.{SampleSpacing, SampledTimes}

/**
 * Passes rows on, and times what happens from the moment a row is handed over until the next row is requested.
 *
 * Operators open resources at the first row. Because rows are often sorted, the first row of every batch may have the
 * same key. So that this key is not charged for the opening, at most the mean time of the later rows is booked to the
 * first row. Likewise, at most the mean time for a row of the later groups is booked to the end of the first group.
 *
 * @param rows
 *   The rows to pass on
 * @param keys
 *   Bound expressions of the key
 * @param isInput
 *   Whether these rows are the input of the task, so that they are counted
 * @param grouped
 *   Whether all rows of a key come together. Then the time between the first row of a key and the first use of its
 *   state is booked to the key before
 * @param hash
 *   Hash of a row's key
 * @param meter
 *   Meter of the task
 * @param part
 *   Part of the operator that receives the rows
 * @param reportKeys
 *   Whether keys may be shown in reports
 */
final private class MeteredRows(
    rows: Iterator[InternalRow],
    keys: Seq[Expression],
    isInput: Boolean,
    grouped: Boolean,
    hash: ShardHash,
    meter: TaskMeter,
    part: OperatorPart,
    reportKeys: Boolean
) extends Iterator[InternalRow] {
  private val spacing = meter.spacing()
  private val groupSpacing = meter.spacing()
  private lazy val onTaskThread = meter.isOfThisThread
  private lazy val text = new KeyText(keys, reportKeys)
  private val rowTimes = new FirstAsOthers(book(meter.step()))
  private val groupTimes = if (grouped) new FirstAsOthers(book(meter.step())) else rowTimes
  private var owns = false
  private var timed: InternalRow = _
  private var timedHash = 0
  private var sinceNs = 0L
  // The group of the newest row, and its first row if the end of the group will be timed.
  private var inGroup = false
  private var groupHash = 0
  private var groupRows = 0L
  private var groupRow: InternalRow = _
  // The group before, while its end is being timed.
  private var ended: InternalRow = _
  private var endedHash = 0
  private var endedRows = 0L

  meter.onEnd { () => rowTimes.settle(); if (grouped) groupTimes.settle() }

  override def hasNext: Boolean = {
    finishRow()
    val more = rows.hasNext
    if (!more && inGroup) endLastGroup()
    more
  }

  override def next(): InternalRow = {
    finishRow()
    val row = rows.next()
    owns = onTaskThread && meter.enter()
    if (owns) {
      if (grouped) timeInGroup(row) else if (spacing.takes()) time(row, hash.ofKey(row))
      if (isInput && meter.countsAll) countAll(row)
    } else if (onTaskThread) part.goesOn()
    if (part.counts) part.counted(hash.ofKey(row))
    row
  }

  private def countAll(row: InternalRow): Unit = {
    val key = hash.ofKey(row)
    meter.count(key)(text.of(row, key))
  }

  private def finishRow(): Unit = if (owns) close() else part.ends()

  private def time(row: InternalRow, key: Int): Unit = {
    timed = row
    timedHash = key
    begin()
  }

  private def begin(): Unit = {
    sinceNs = meter.begin(System.nanoTime())
    part.begins(sinceNs)
  }

  private def timeInGroup(row: InternalRow): Unit = {
    val key = hash.ofKey(row)
    if (inGroup && key == groupHash) {
      groupRows += 1
      if (spacing.takes()) time(row, key)
    } else {
      val isTimed = if (inGroup) endGroup() else spacing.takes()
      inGroup = true
      groupHash = key
      groupRows = 1
      if (isTimed) time(row, key)
      // Otherwise the row may be kept when the end of the previous group has been timed: the spacing is known then.
      if (ended == null) keep(row)
    }
  }

  private def keep(row: InternalRow): Unit = groupRow = if (row != null && groupSpacing.isDue) row.copy() else null

  /** Ends the group of the newest row. Returns whether its end is timed. */
  private def endGroup(): Boolean = {
    val isTimed = groupSpacing.takes()
    if (isTimed) {
      ended = groupRow
      endedHash = groupHash
      endedRows = groupRows
      meter.stateInUse.watch(groupHash)
    }
    isTimed
  }

  /**
   * Called when the input ends. Operators ask once more when they have finished the last group, which ends its timing.
   */
  private def endLastGroup(): Unit = {
    inGroup = false
    owns = onTaskThread && meter.enter()
    if (owns && endGroup()) begin()
  }

  private def close(): Unit = {
    val now = System.nanoTime()
    if (ended != null) closeGroup(now)
    else if (timed != null) {
      val weight = spacing.weight.toLong
      part.timed(timedHash, spacing.weight)
      rowTimes.add(
        timedHash,
        Reading(spacing.timed(undisturbed(spacing, now)), weight, weight)
      )(text.of(timed, timedHash))
    }
    timed = null
    meter.leave()
    owns = false
  }

  private def closeGroup(now: Long): Unit = {
    val doneAt = meter.stateInUse.doneAt(otherwise = if (timed == null) now else sinceNs)
    val weight = groupSpacing.weight.toLong
    part.timed(endedHash, groupSpacing.weight)
    val ns = math.max(1L, now - sinceNs)
    val booked = groupSpacing.timed(undisturbed(groupSpacing, now)).toDouble / ns
    val groupReading = Reading(((doneAt - sinceNs) * booked).toLong, weight * endedRows, weight)
    groupTimes.add(endedHash, groupReading)(text.of(ended, endedHash))
    if (timed != null)
      rowTimes.add(timedHash, Reading(((now - doneAt) * booked).toLong, weight, weight))(text.of(timed, timedHash))
    ended = null
    keep(timed)
  }

  /** Time since the timing of a row or a group began, without interruptions of the thread. */
  private def undisturbed(sampler: SampleSpacing, nowNs: Long): Long = {
    val ns = math.max(1L, nowNs - sinceNs)
    if (sampler.isUnusual(ns)) meter.undisturbed(ns, nowNs) else ns
  }

  private def book(step: SampledTimes)(key: Int, reading: Reading)(text: => String): Unit =
    meter.book(step, key, reading, isInput)(text)
}

/**
 * Books readings as they come, except the first: it is booked at the end, with at most the mean time per row of the
 * others.
 */
final private class FirstAsOthers(book: (Int, Reading) => (=> String) => Unit) {
  private var first: Option[FirstAsOthers.First] = None
  private var otherNs = 0.0
  private var others = 0L

  def add(key: Int, reading: Reading)(text: => String): Unit =
    if (first.isEmpty) first = Some(FirstAsOthers.First(key, text, reading))
    else {
      otherNs += reading.ns
      others += reading.rows
      book(key, reading)(text)
    }

  def settle(): Unit = first.foreach { f =>
    val asOthers = if (others > 0) (f.reading.rows * otherNs / others).toLong else f.reading.ns
    book(f.key, f.reading.copy(ns = math.min(f.reading.ns, asOthers)))(f.text)
  }
}

private object FirstAsOthers {
  final case class First(key: Int, text: String, reading: Reading)
}

object MeteredRows {

  /** Times and counts the input rows of the running task. For the arguments see [[within]]. */
  def input(rows: Iterator[InternalRow], keys: Seq[Expression], reader: Long, load: RegionLoad): Iterator[InternalRow] =
    metered(rows, keys, isInput = true, MeteredReader(reader, grouped = false, fromOthers = true), load)

  /**
   * Times rows within the running task.
   *
   * @param rows
   *   The rows
   * @param keys
   *   Bound expressions whose hash determines the shard of a row
   * @param reader
   *   Operator that receives the rows
   * @param load
   *   Receives the measurements of the task's region
   */
  def within(
      rows: Iterator[InternalRow],
      keys: Seq[Expression],
      reader: MeteredReader,
      load: RegionLoad
  ): Iterator[InternalRow] =
    metered(rows, keys, isInput = false, reader, load)

  private def metered(
      rows: Iterator[InternalRow],
      keys: Seq[Expression],
      isInput: Boolean,
      reader: MeteredReader,
      load: RegionLoad
  ) = {
    val meter = TaskMeter.of(TaskContext.get(), load)
    new MeteredRows(
      rows,
      keys,
      isInput,
      reader.grouped,
      ShardHash(keys, load.layout),
      meter,
      meter.partOf(reader.operator, reader.fromOthers),
      load.reportKeys
    )
  }
}

/**
 * An operator that receives timed rows.
 *
 * @param operator
 *   Id of the operator
 * @param grouped
 *   Whether the operator takes all rows of a key together
 * @param fromOthers
 *   Whether the rows come from outside the operator, and not from another of its own nodes
 */
final case class MeteredReader(operator: Long, grouped: Boolean, fromOthers: Boolean)
