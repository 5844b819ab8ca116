package org.apache.spark.sql.penstock.integration.handover

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness.Event
import org.apache.spark.sql.streaming.GroupState
import org.apache.spark.sql.streaming.GroupStateTimeout.NoTimeout
import org.apache.spark.sql.{DataFrame, Dataset, Encoders}

/** A count and a sum by key. Each row that is asked for reads the state of its key, and not before. */
final case class SlowQuery(name: String)(val of: Dataset[Event] => DataFrame)

object SlowQuery {
  private val byFunction = SlowQuery("mapGroupsWithState")(
    _.groupByKey(_.key)(Encoders.scalaLong)
      .mapGroupsWithState(NoTimeout)(total _)(Encoders.product[Total], Encoders.product[Total]).toDF()
  )

  /** The largest text makes Spark aggregate sorted rows one after the other, and not all of them in a hash table. */
  private val bySort = SlowQuery("aggregation of sorted rows")(
    _.groupBy("key").agg(count("*").as("n"), sum("value").as("total"), max(concat(lit("v"), col("value"))).as("text"))
  )

  val all: Seq[SlowQuery] = Seq(byFunction, bySort)

  private def total(key: Long, rows: Iterator[Event], state: GroupState[Total]): Total = {
    val after = rows.foldLeft(state.getOption.getOrElse(Total(key, 0L, 0L)))((sum, row) =>
      Total(key, sum.n + 1, sum.total + row.value)
    )
    state.update(after)
    after
  }
}

final case class Total(key: Long, n: Long, total: Long)
