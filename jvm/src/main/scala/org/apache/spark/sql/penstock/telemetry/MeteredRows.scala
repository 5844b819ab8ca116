package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.penstock.sharding.ShardHash

import io.penstock.telemetry.{SampleSpacing, SampledTimes}

/**
 * Passes rows on, and times what happens between a row and the question for the next.
 *
 * With the first row operators open what they need, and often the same key is the first of every batch, because rows were
 * sorted: so the first one is booked with no more than the mean of those after it, and what is done after its group's last
 * row with no more than the mean for a row of the other groups.
 *
 * @param grouped
 *   whether all rows of a key come together: then what is done between the first row of a key and the first use of its state
 *   is booked to the key before
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
  private lazy val audible = meter.isOfThisThread
  private lazy val text = new KeyText(keys, reportKeys)
  private val ofRows = new FirstAsOthers(book(meter.step()))
  private val ofGroups = if (grouped) new FirstAsOthers(book(meter.step())) else ofRows
  private var owns = false
  private var timed: InternalRow = _
  private var timedHash = 0
  private var sinceNs = 0L
  // The group of the newest row, and its first row where the group's end will be timed.
  private var inGroup = false
  private var groupHash = 0
  private var groupRows = 0L
  private var groupRow: InternalRow = _
  // The group before, while its end is being timed.
  private var ended: InternalRow = _
  private var endedHash = 0
  private var endedRows = 0L

  meter.onEnd { () => ofRows.settle(); if (grouped) ofGroups.settle() }

  override def hasNext: Boolean = {
    asked()
    val more = rows.hasNext
    if (!more && inGroup) endLastGroup()
    more
  }

  override def next(): InternalRow = {
    asked()
    val row = rows.next()
    owns = audible && meter.enter()
    if (owns) {
      if (grouped) ofGroup(row) else if (spacing.takes()) time(row, hash.ofKey(row))
      if (isInput && meter.countsAll) countAll(row)
    } else if (audible) part.goesOn()
    if (part.counts) part.counted(hash.ofKey(row))
    row
  }

  private def countAll(row: InternalRow): Unit = {
    val key = hash.ofKey(row)
    meter.count(key)(text.of(row, key))
  }

  private def asked(): Unit = if (owns) close() else part.ends()

  private def time(row: InternalRow, key: Int): Unit = {
    timed = row
    timedHash = key
    begin()
  }

  private def begin(): Unit = {
    sinceNs = System.nanoTime()
    meter.watch(sinceNs)
    part.begins(sinceNs)
  }

  private def ofGroup(row: InternalRow): Unit = {
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
      // Else the spacing tells when the row has been timed.
      if (ended == null) keep(row)
    }
  }

  private def keep(row: InternalRow): Unit = groupRow = if (row != null && groupSpacing.isDue) row.copy() else null

  /** Whether the end of the newest row's group is timed. */
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

  /** Operators ask once more when they have done with the last group. */
  private def endLastGroup(): Unit = {
    inGroup = false
    owns = audible && meter.enter()
    if (owns && endGroup()) begin()
  }

  private def close(): Unit = {
    val now = System.nanoTime()
    if (ended != null) closeGroup(now)
    else if (timed != null) {
      val weight = spacing.weight.toLong
      part.timed(timedHash, spacing.weight)
      ofRows.add(
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
    val ofGroup = Reading(((doneAt - sinceNs) * booked).toLong, weight * endedRows, weight)
    ofGroups.add(endedHash, ofGroup)(text.of(ended, endedHash))
    if (timed != null)
      ofRows.add(timedHash, Reading(((now - doneAt) * booked).toLong, weight, weight))(text.of(timed, timedHash))
    ended = null
    keep(timed)
  }

  /** The time since a row or a group is timed, less what interrupted the thread meanwhile. */
  private def undisturbed(by: SampleSpacing, nowNs: Long): Long = {
    val ns = math.max(1L, nowNs - sinceNs)
    if (by.isUnusual(ns)) meter.undisturbed(ns, nowNs) else ns
  }

  private def book(step: SampledTimes)(key: Int, reading: Reading)(text: => String): Unit =
    meter.book(step, key, reading, isInput)(text)
}

/** Books times as they come, but the first with no more than the mean of the others for a row, when all are known. */
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

  /** The input of the running task, timed and counted. Arguments as for [[within]]. */
  def input(rows: Iterator[InternalRow], keys: Seq[Expression], reader: Long, load: RegionLoad): Iterator[InternalRow] =
    metered(rows, keys, isInput = true, MeteredReader(reader, grouped = false, fromOthers = true), load)

  /**
   * Rows within the running task, timed.
   *
   * @param keys
   *   bound expressions whose hash is a row's shard
   * @param reader
   *   the operator that gets them
   * @param load
   *   of the task's region, which gets what is measured
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
 * The operator that gets rows that are timed.
 *
 * @param operator
 *   its id
 * @param grouped
 *   whether it takes all rows of a key together
 * @param fromOthers
 *   whether they come into it, not from another of its own nodes
 */
final case class MeteredReader(operator: Long, grouped: Boolean, fromOthers: Boolean)
