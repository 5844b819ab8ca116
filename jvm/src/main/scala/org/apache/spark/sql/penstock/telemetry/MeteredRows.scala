package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.penstock.sharding.ShardHash

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
  private val ofRows = new FirstAsOthers(book)
  private val ofGroups = new FirstAsOthers(book)
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

  meter.onEnd { () => ofRows.settle(); ofGroups.settle() }

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
    } else if (audible) part.goesOn()
    if (part.counts) part.counted(hash.ofKey(row))
    row
  }

  private def asked(): Unit = if (owns) close() else part.ends()

  private def time(row: InternalRow, key: Int): Unit = {
    timed = row
    timedHash = key
    begin()
  }

  private def begin(): Unit = {
    sinceNs = System.nanoTime()
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
      ofRows.add(timedHash, spacing.timed(now - sinceNs), weight)(text.of(timed, timedHash))
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
    val booked = groupSpacing.timed(ns).toDouble / ns
    ofGroups.add(endedHash, ((doneAt - sinceNs) * booked).toLong, weight * endedRows)(text.of(ended, endedHash))
    if (timed != null)
      ofRows.add(timedHash, ((now - doneAt) * booked).toLong, weight)(text.of(timed, timedHash))
    ended = null
    keep(timed)
  }

  private def book(key: Int, ns: Long, weight: Long)(text: => String): Unit =
    meter.book(key, ns, if (isInput) weight else 0L)(text)
}

/** Books times as they come, but the first with no more than the mean of the others for a row, when all are known. */
final private class FirstAsOthers(book: (Int, Long, Long) => (=> String) => Unit) {
  private var first: Option[FirstAsOthers.Time] = None
  private var otherNs = 0.0
  private var others = 0L

  def add(key: Int, ns: Long, weight: Long)(text: => String): Unit =
    if (first.isEmpty) first = Some(FirstAsOthers.Time(key, text, ns, weight))
    else {
      otherNs += ns
      others += weight
      book(key, ns, weight)(text)
    }

  def settle(): Unit = first.foreach { f =>
    val ns = if (others > 0) math.min(f.ns, (f.weight * otherNs / others).toLong) else f.ns
    book(f.key, ns, f.weight)(f.text)
  }
}

private object FirstAsOthers {
  final case class Time(key: Int, text: String, ns: Long, weight: Long)
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
