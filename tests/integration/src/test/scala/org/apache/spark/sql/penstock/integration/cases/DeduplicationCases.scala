package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness.{Equivalence, EventGenerator, OperatorCase}
import org.apache.spark.sql.streaming.OutputMode.{Append, Update}

/** dropDuplicates in its three forms, alone and with an aggregation above, and the streaming limit. */
object DeduplicationCases {

  val unbounded: OperatorCase = OperatorCase("dropDuplicates", Append())(
    _.left.select("key", "value").dropDuplicates("key", "value")
  )

  val withWatermark: OperatorCase = OperatorCase("dropDuplicates with eviction", Append())(
    _.leftWatermarked.select("key", "ts").dropDuplicates("key", "ts")
  )

  /**
   * Makes a row's event time depend only on its key and input, because Spark chooses which of several rows is first.
   */
  val withinWatermark: OperatorCase = OperatorCase("dropDuplicatesWithinWatermark", Append())(
    _.left
      .select(
        col("key"),
        timestamp_seconds(col("batch") * EventGenerator.SecondsPerInput + col("key") % 4).as("ts")
      )
      .withWatermark("ts", "3 seconds")
      .dropDuplicatesWithinWatermark("key")
  )

  private val thenAggregationInOneStage =
    OperatorCase("dropDuplicates and aggregation in one stage", Update())(
      _.left.select("key", "value").dropDuplicates("key", "value").groupBy("key", "value").agg(count("*"))
    )

  val thenAggregationByLess: OperatorCase =
    OperatorCase("dropDuplicates(key, value), then aggregation by key", Update())(
      _.left.select("key", "value").dropDuplicates("key", "value").groupBy("key").agg(count("*"), sum("value"))
    )

  private val limit =
    OperatorCase(
      "limit",
      Append(),
      unrouted = Some("one partition"),
      equivalence = Equivalence.SameCounts
    )(_.left.select("key", "value").limit(150))

  private val thenLimit =
    OperatorCase(
      "dropDuplicates, then limit",
      Append(),
      unrouted = Some("one partition"),
      equivalence = Equivalence.SameCounts
    )(
      _.left.select("key").dropDuplicates("key").limit(25)
    )

  val all: Seq[OperatorCase] =
    Seq(unbounded, withWatermark, withinWatermark, thenAggregationInOneStage, thenAggregationByLess, limit, thenLimit)
}
