package org.apache.spark.sql.penstock.integration

import java.time.Duration

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.cases.{EveryVariable, Timers}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.{OutputMode, TimeMode, Trigger}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row, classic}

import org.scalatest.funsuite.AnyFunSuite

/** Queries without state use Spark's own plans while the plugin is on with default settings. */
class UntouchedQueriesSuite extends AnyFunSuite with PenstockApplication {
  private lazy val session: classic.SparkSession = application.newSession()
  private lazy val events = new EventGenerator(seed = 3).input(0, 200)

  private def static: DataFrame = session.createDataFrame(events)

  private def assertUntouched(rows: DataFrame): Unit = {
    rows.collect()
    assert(Plans.ours(Plans.of(rows)).isEmpty)
  }

  test("batch queries have plain plans: aggregation, join, deduplication, sort, window functions") {
    val counts = static.groupBy("key").agg(count("*").as("n"))
    val expected = events.groupBy(_.key).map { case (key, rows) => key -> rows.size.toLong }
    assert(counts.collect().map(row => row.getLong(0) -> row.getLong(1)).toMap == expected)
    Seq(
      counts,
      static.join(counts, "key"),
      static.dropDuplicates("key", "value"),
      static.orderBy("value"),
      static.repartition(7, col("key")),
      static.withColumn("rank", expr("row_number() over (partition by key order by time, value)"))
    ).foreach(assertUntouched)
  }

  test("batch queries over groups, including transformWithState, have plain plans") {
    import session.implicits._
    val groups = session.createDataset(events).groupByKey(_.key)
    assertUntouched(groups.mapGroups((key, rows) => (key, rows.size)).toDF())
    assertUntouched(groups.flatMapSortedGroups($"time")((key, rows) => Iterator((key, rows.size))).toDF())
    val processor = new EveryVariable(Timers.None, Duration.ZERO)
    // In batch queries, too, Spark's store needs the coordinator that the manager of streaming queries starts.
    assert(session.streams.active.isEmpty)
    assertUntouched(groups.transformWithState(processor, TimeMode.None(), OutputMode.Append()).toDF())
  }

  test("a stateless stream with an exchange has a plain plan") {
    val plans = mutable.ArrayBuffer.empty[String]
    val rows = mutable.ArrayBuffer.empty[String]
    val query = run(_.filter("key > 3").repartition(5, col("key")), "append") { batch =>
      rows ++= batch.collect().map(Rendering.of)
      plans ++= Plans.ours(Plans.of(batch))
    }
    assert(QueryRun.lastPlan(query).exists(Plans.ours(_).isEmpty))
    assert(plans.isEmpty)
    assert(rows.sorted == events.filter(_.key > 3).map(event => Rendering.of(Row.fromTuple(event))).sorted)
  }

  test("batch queries inside foreachBatch of a stateful stream have plain plans") {
    val plans = mutable.ArrayBuffer.empty[String]
    val totals = mutable.ArrayBuffer.empty[Long]
    run(_.groupBy("key").agg(count("*").as("n")), "update") { batch =>
      val regrouped = batch.groupBy(col("key") % 3).agg(sum("n").as("n"))
      totals += regrouped.collect().map(_.getLong(1)).sum
      plans ++= Plans.ours(Plans.of(regrouped))
      assertUntouched(batch.sparkSession.createDataFrame(events).groupBy("key").count())
    }
    assert(plans.isEmpty)
    assert(totals.sum == events.size)
  }

  private def run(query: DataFrame => DataFrame, mode: String)(look: DataFrame => Unit) = {
    val source = MemoryStream[Event](Encoders.product[Event], session)
    source.addData(events)
    PublicRun.toTheEnd(
      query(source.toDF()).writeStream
        .outputMode(mode)
        .option("checkpointLocation", newDirectory("checkpoint").toString)
        .trigger(Trigger.AvailableNow())
        .foreachBatch((batch: Dataset[Row], _: Long) => look(batch))
    )
  }
}
