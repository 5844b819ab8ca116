package org.apache.spark.sql.penstock.routing

import java.sql.Timestamp

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.{DataFrame, Encoders}

/** Small stateful queries on one stream of events, at least one for each stateful operator. */
object Queries {
  final case class Event(k: Long, v: Long, t: Timestamp)
  final case class Seen(k: Long, n: Long)

  type Build = DataFrame => DataFrame
  final case class Query(name: String, mode: String, build: Build)

  def events(spark: SparkSession): MemoryStream[Event] = MemoryStream[Event](Encoders.product[Event], spark)

  /** Events of one input: 40 keys, one of them hot, in the ten minutes from `input * 10`. */
  def input(input: Int, rows: Int = 120): Seq[Event] = {
    val random = new scala.util.Random(input)
    Seq.fill(rows) {
      val k = if (random.nextInt(4) == 0) 7L else random.nextInt(40).toLong
      Event(k, random.nextInt(1000), new Timestamp((input * 10L * 60 + random.nextInt(600)) * 1000))
    }
  }

  private def marked(in: DataFrame) = in.withWatermark("t", "5 minutes")

  private class Count extends StatefulProcessor[Long, Event, (Long, Long)] {
    @transient private var n: ValueState[Long] = _
    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      n = getHandle.getValueState[Long]("n", Encoders.scalaLong, TTLConfig.NONE)
    override def handleInputRows(key: Long, rows: Iterator[Event], timers: TimerValues): Iterator[(Long, Long)] = {
      n.update(Option(n.get()).getOrElse(0L) + rows.size)
      Iterator((key, n.get()))
    }
  }

  private def typed(in: DataFrame) = in.as[Event](Encoders.product[Event]).groupByKey(_.k)(Encoders.scalaLong)

  private val pair = Encoders.tuple(Encoders.scalaLong, Encoders.scalaLong)

  private def join(in: DataFrame): DataFrame = {
    val left = marked(in.selectExpr("k", "v as a", "t")).as("l")
    val right = marked(in.where("v % 3 = 0").selectExpr("k", "v as b", "t")).as("r")
    val near = expr("l.k = r.k and r.t between l.t and l.t + interval 1 minute")
    left.join(right, near).select("l.k", "a", "b")
  }

  def named(name: String): Query = all.find(_.name == name).get

  private val all: Seq[Query] = Seq(
    Query("aggregation, update", "update", _.groupBy("k").agg(count("*"), sum("v"))),
    Query("global aggregation", "update", _.agg(sum("v"))),
    Query(
      "deduplication and aggregation by one key",
      "append",
      in =>
        marked(in).dropDuplicates("k", "t").groupBy(col("k"), col("t")).count()
    ),
    Query(
      "deduplication, then aggregation by another key",
      "append",
      in =>
        marked(in).dropDuplicates("k", "v", "t").groupBy(window(col("t"), "2 minutes"), col("v") % 5).count()
    ),
    Query(
      "session windows",
      "append",
      in => marked(in).groupBy(session_window(col("t"), "30 seconds"), col("k")).count()
    ),
    Query("inner join", "append", join),
    Query(
      "flatMapGroupsWithState",
      "update",
      in =>
        typed(in).flatMapGroupsWithState[Long, (Long, Long)](OutputMode.Update(), GroupStateTimeout.NoTimeout()) {
          (k: Long, rows: Iterator[Event], s: GroupState[Long]) =>
            s.update(s.getOption.getOrElse(0L) + rows.size)
            Iterator((k, s.get))
        }(Encoders.scalaLong, pair).toDF()
    ),
    Query(
      "transformWithState",
      "update",
      in =>
        typed(in).transformWithState(new Count, TimeMode.None(), OutputMode.Update())(pair).toDF()
    ),
    Query(
      "union of two stateful branches",
      "append",
      in =>
        marked(in).dropDuplicates(
          "k",
          "t"
        ).select("k", "t").union(marked(in).where("v > 500").dropDuplicates("k", "t").select("k", "t"))
    ),
    Query(
      "aggregation joined with a static table",
      "update",
      in => {
        val names = in.sparkSession.range(40).selectExpr("id as k", "id * 2 as name").hint("merge")
        in.groupBy("k").agg(sum("v").as("s")).join(names, "k")
      }
    ),
    Query(
      "aggregation of a join with a static table by the same key",
      "update",
      in => {
        val names = in.sparkSession.range(40).selectExpr("id as k", "id * 2 as name").hint("merge")
        in.join(names, "k").groupBy("k").agg(sum("name"))
      }
    ),
    Query("aggregation, coalesced", "update", _.groupBy("k").count().coalesce(2)),
    Query("streaming limit", "append", _.select(lit(1).as("one")).limit(150))
  )
}
