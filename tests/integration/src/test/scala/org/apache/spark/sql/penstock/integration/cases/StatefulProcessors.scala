package org.apache.spark.sql.penstock.integration.cases

import java.time.Duration

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.penstock.integration.harness.Event
import org.apache.spark.sql.streaming._

/** Report of a processor: two numbers, and the complete state of the group as text. */
final case class StateReport(key: Long, first: Long, second: Long, state: String)

final case class CompoundKey(remainder: Long, name: String)

/** Kind of timers that [[EveryVariable]] registers. */
sealed trait Timers

object Timers {
  case object None extends Timers
  case object EventTime extends Timers
  case object ProcessingTime extends Timers
}

/**
 * Uses value, list and map state and timers, and reports all of it, so that a single wrong entry changes the answer.
 *
 * @param timeToLive
 *   Time to live of all three variables; zero for none
 */
class EveryVariable(timers: Timers, timeToLive: Duration) extends StatefulProcessor[Long, Event, StateReport] {
  @transient private var rowCount: ValueState[Long] = _
  @transient private var values: ListState[Long] = _
  @transient private var byRemainder: MapState[Long, Long] = _

  override def init(mode: OutputMode, time: TimeMode): Unit = {
    val ttl = if (timeToLive.isZero) TTLConfig.NONE else TTLConfig(timeToLive)
    rowCount = getHandle.getValueState("rowCount", Encoders.scalaLong, ttl)
    values = getHandle.getListState("values", Encoders.scalaLong, ttl)
    byRemainder = getHandle.getMapState("byRemainder", Encoders.scalaLong, Encoders.scalaLong, ttl)
  }

  override def handleInputRows(key: Long, rows: Iterator[Event], time: TimerValues): Iterator[StateReport] = {
    val sorted = rows.toSeq.sortBy(row => (row.time, row.value))
    val before = if (rowCount.exists()) rowCount.get() else 0L
    sorted.zipWithIndex.foreach { case (row, index) => remember(row, before + index + 1) }
    val count = before + sorted.size
    if (count % 11 == 0) values.clear()
    if (count % 17 == 0) values.put(Array(count, count + 1))
    if (count % 23 == 0) {
      rowCount.clear()
      byRemainder.clear()
    } else rowCount.update(count)
    registerTimers(key, sorted.map(_.time).max, time)
    Iterator(StateReport(key, count, sorted.size, show))
  }

  override def handleExpiredTimer(key: Long, time: TimerValues, expired: ExpiredTimerInfo): Iterator[StateReport] =
    Iterator(StateReport(key, -1, expired.getExpiryTimeInMs(), s"$show timers=${timersLeft.mkString(",")}"))

  private def remember(row: Event, count: Long): Unit = {
    values.appendValue(row.value)
    byRemainder.updateValue(row.value % 5, count)
    if (row.value % 17 == 3) byRemainder.removeKey((row.value + 1) % 5)
  }

  private def registerTimers(key: Long, latestSecond: Long, time: TimerValues): Unit = timers match {
    case Timers.None =>
    case Timers.EventTime =>
      timersLeft.filter(_ % 3000 == 0).foreach(getHandle.deleteTimer)
      getHandle.registerTimer(latestSecond * 1000 + 7000 + key % 4 * 1000)
    case Timers.ProcessingTime =>
      getHandle.registerTimer(time.getCurrentProcessingTimeInMs() + 3000 + key % 5 * 1000)
  }

  private def timersLeft: Seq[Long] = getHandle.listTimers().toSeq.sorted

  private def show: String = {
    val list = values.get().toSeq.sorted.mkString(",")
    val map = byRemainder.iterator().toSeq.sorted.mkString(",")
    s"values=$list byRemainder=$map"
  }
}

/** Counts from the number that the initial state gives the key. */
class CountFromInitialState extends StatefulProcessorWithInitialState[Long, Event, StateReport, (Long, Long)] {
  @transient private var count: ValueState[Long] = _

  override def init(mode: OutputMode, time: TimeMode): Unit =
    count = getHandle.getValueState("count", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInitialState(key: Long, initial: (Long, Long), time: TimerValues): Unit =
    count.update(initial._2)

  override def handleInputRows(key: Long, rows: Iterator[Event], time: TimerValues): Iterator[StateReport] = {
    val updated = (if (count.exists()) count.get() else 0L) + rows.size
    count.update(updated)
    Iterator(StateReport(key, updated, 0, ""))
  }
}

/** Map state with time to live under a key of two columns. Reports every entry. */
class CountByNameUnderCompoundKey extends StatefulProcessor[CompoundKey, Event, (String, Long)] {
  @transient private var counts: MapState[String, Long] = _

  override def init(mode: OutputMode, time: TimeMode): Unit =
    counts = getHandle.getMapState("counts", Encoders.STRING, Encoders.scalaLong, TTLConfig(Duration.ofSeconds(9)))

  override def handleInputRows(key: CompoundKey, rows: Iterator[Event], time: TimerValues): Iterator[(String, Long)] = {
    rows.foreach { row =>
      val name = s"v${row.value % 3}"
      counts.updateValue(name, (if (counts.containsKey(name)) counts.getValue(name) else 0L) + 1)
    }
    counts.iterator().map { case (name, count) => (s"$key $name", count) }
  }
}

final case class CountV1(count: Long)

final case class CountV2(count: Long, latest: Option[Long])

/** First version of a processor whose state's schema changes. */
class CountingV1 extends StatefulProcessor[Long, Event, StateReport] {
  @transient private var state: ValueState[CountV1] = _

  override def init(mode: OutputMode, time: TimeMode): Unit =
    state = getHandle.getValueState("state", Encoders.product[CountV1], TTLConfig.NONE)

  override def handleInputRows(key: Long, rows: Iterator[Event], time: TimerValues): Iterator[StateReport] = {
    val count = (if (state.exists()) state.get().count else 0L) + rows.size
    state.update(CountV1(count))
    Iterator(StateReport(key, count, 0, "v1"))
  }
}

/** Second version: it has one more field, which is missing in the first version's state, and one more variable. */
class CountingV2 extends StatefulProcessor[Long, Event, StateReport] {
  @transient private var state: ValueState[CountV2] = _
  @transient private var inputs: ListState[Long] = _

  override def init(mode: OutputMode, time: TimeMode): Unit = {
    state = getHandle.getValueState("state", Encoders.product[CountV2], TTLConfig.NONE)
    inputs = getHandle.getListState("inputs", Encoders.scalaLong, TTLConfig.NONE)
  }

  override def handleInputRows(key: Long, rows: Iterator[Event], time: TimerValues): Iterator[StateReport] = {
    val before = Option.when(state.exists())(state.get())
    val all = rows.toSeq
    val count = before.fold(0L)(_.count) + all.size
    state.update(CountV2(count, Some(all.map(_.time).max)))
    inputs.appendValue(all.head.batch)
    Iterator(StateReport(key, count, 0, s"v2 ${before.map(_.latest)} ${inputs.get().toSeq.sorted.mkString(",")}"))
  }
}
