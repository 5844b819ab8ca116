package org.apache.spark.sql.penstock.integration.cases

import java.sql.Timestamp

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.penstock.integration.harness.{Engine, Event, OperatorCase, QueryInput}
import org.apache.spark.sql.streaming.OutputMode.{Append, Update}
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}

/** State of a group: the number of its rows, and its latest event time in seconds. */
final case class Seen(rows: Long, latest: Long)

/** Report of a group: the number of its rows so far, and the reason for the report. */
final case class Report(key: Long, rows: Long, reason: String)

/** mapGroupsWithState and flatMapGroupsWithState with every timeout. */
object GroupsWithStateCases {
  import GroupStateTimeout._

  private type TimedRow = (Long, Long, Timestamp)

  private def flatMap(name: String, timeout: GroupStateTimeout, mode: OutputMode) = OperatorCase(
    name,
    mode,
    evidence = if (timeout == NoTimeout) Nil else Seq("timeout")
  ) { in =>
    import in.session.implicits._
    timedRows(in, timeout)
      .as[TimedRow]
      .groupByKey(_._1)
      .flatMapGroupsWithState[Seen, Report](mode, timeout)(count(timeout))
      .toDF()
  }

  private def timedRows(in: QueryInput, timeout: GroupStateTimeout): DataFrame =
    (if (timeout == EventTimeTimeout) in.leftWatermarked else in.left).select("key", "time", "ts")

  /** Counts the rows of a group. Forgets the group when its timeout, which differs by key, expires. */
  private def count(timeout: GroupStateTimeout)(
      key: Long,
      rows: Iterator[TimedRow],
      state: GroupState[Seen]
  ): Iterator[Report] =
    if (state.hasTimedOut) {
      val seen = state.get
      state.remove()
      Iterator(Report(key, seen.rows, "timeout"))
    } else {
      val before = state.getOption.getOrElse(Seen(0, 0))
      val after = rows.foldLeft(before)((seen, row) => Seen(seen.rows + 1, math.max(seen.latest, row._2)))
      state.update(after)
      if (timeout == ProcessingTimeTimeout) state.setTimeoutDuration(3000 + key % 4 * 1000)
      if (timeout == EventTimeTimeout) {
        val expiry = after.latest * 1000 + 4000 + key % 3 * 1000
        state.setTimeoutTimestamp(math.max(expiry, state.getCurrentWatermarkMs() + 1))
      }
      Iterator(Report(key, after.rows, "rows"))
    }

  private val withoutTimeout = flatMap("flatMapGroupsWithState without timeout", NoTimeout, Update())

  val processingTime: OperatorCase =
    flatMap("flatMapGroupsWithState, processing-time timeout", ProcessingTimeTimeout, Update())

  val eventTime: OperatorCase = flatMap("flatMapGroupsWithState, event-time timeout", EventTimeTimeout, Update())

  private val appending =
    flatMap("flatMapGroupsWithState, event-time timeout, append", EventTimeTimeout, Append())

  private val onRocksDb =
    eventTime.copy(name = "flatMapGroupsWithState, against RocksDB", stock = Engine.RocksDb)(eventTime.query)

  private val map = OperatorCase("mapGroupsWithState", Update()) { in =>
    import in.session.implicits._
    in.leftEvents.groupByKey(_.key).mapGroupsWithState[Long, (Long, Long)](NoTimeout)(total).toDF("key", "rows")
  }

  val initialState: OperatorCase = OperatorCase("flatMapGroupsWithState, initial state", Update()) { in =>
    import in.session.implicits._
    val initial = (0L until 60L).map(key => (key, key * 100)).toDS().groupByKey(_._1).mapValues(_._2)
    in.leftEvents
      .groupByKey(_.key)
      .flatMapGroupsWithState[Long, (Long, Long)](Update(), NoTimeout, initial)((key, rows, state) =>
        Iterator(total(key, rows, state))
      )
      .toDF("key", "rows")
  }

  private def total(key: Long, rows: Iterator[Event], state: GroupState[Long]): (Long, Long) = {
    val rowCount = state.getOption.getOrElse(0L) + rows.size
    state.update(rowCount)
    (key, rowCount)
  }

  val all: Seq[OperatorCase] =
    Seq(withoutTimeout, processingTime, eventTime, appending, onRocksDb, map, initialState)
}
