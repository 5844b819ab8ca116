package org.apache.spark.sql.penstock.integration.handover

import java.time.Duration

import org.apache.spark.sql.penstock.integration.cases.{EveryVariable, StateReport, Timers}
import org.apache.spark.sql.penstock.integration.harness.{Engine, Event}
import org.apache.spark.sql.streaming.GroupStateTimeout.NoTimeout
import org.apache.spark.sql.streaming.{GroupState, OutputMode, TimeMode}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders}

/**
 * Counts and sums by key. The state of a key is read when a row is requested, and not before. An aggregation would read
 * all of it first.
 *
 * @param stock
 *   Spark's provider to compare with
 */
final case class SlowQuery(name: String, stock: String)(val build: Dataset[Event] => DataFrame)

object SlowQuery {
  private val byFunction = SlowQuery("mapGroupsWithState", Engine.HdfsBacked)(
    _.groupByKey(_.key)(Encoders.scalaLong)
      .mapGroupsWithState(NoTimeout)(total _)(Encoders.product[Total], Encoders.product[Total]).toDF()
  )

  private val byProcessor = SlowQuery("transformWithState", Engine.RocksDb)(
    _.groupByKey(_.key)(Encoders.scalaLong)
      .transformWithState(new EveryVariable(Timers.None, Duration.ZERO), TimeMode.None(), OutputMode.Update())(
        Encoders.product[StateReport]
      ).toDF()
  )

  val all: Seq[SlowQuery] = Seq(byFunction, byProcessor)

  private def total(key: Long, rows: Iterator[Event], state: GroupState[Total]): Total = {
    val after = rows.foldLeft(state.getOption.getOrElse(Total(key, 0L, 0L)))((sum, row) =>
      Total(key, sum.n + 1, sum.total + row.value)
    )
    state.update(after)
    after
  }
}

final case class Total(key: Long, n: Long, total: Long)
