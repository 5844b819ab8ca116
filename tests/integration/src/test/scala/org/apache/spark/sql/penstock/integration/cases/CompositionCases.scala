package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness.{Engine, OperatorCase}
import org.apache.spark.sql.streaming.OutputMode.{Append, Update}

/** Several stateful operators in one query: in a chain, side by side, in one stage or in several. */
object CompositionCases {

  private val chainedWindows = OperatorCase("window aggregation above a window aggregation", Append())(
    _.leftWatermarked
      .groupBy(window(col("ts"), "5 seconds"), col("key"))
      .count()
      .groupBy(window(col("window"), "10 seconds"))
      .agg(sum("count"), count("*"))
  )

  val chainedWindowsOtherKey: OperatorCase =
    OperatorCase("window aggregation above a window aggregation, by another key", Append())(
      _.leftWatermarked
        .groupBy(window(col("ts"), "5 seconds"), col("key"))
        .count()
        .groupBy(window(col("window"), "10 seconds"), col("key") % 5)
        .agg(sum("count"), count("*"))
    )

  private val twoKeys = OperatorCase("dropDuplicates by one key, window aggregation by another", Append())(
    _.leftWatermarked
      .select("key", "value", "ts")
      .dropDuplicates("key", "value", "ts")
      .groupBy(window(col("ts"), "5 seconds"), col("value") % 7)
      .agg(count("*"), sum("key"))
  )

  private val unionOfBranches = OperatorCase("union of two stateful branches", Append(), twoInputs = true)(in =>
    in.left.select("key", "value").dropDuplicates("key", "value")
      .union(in.right.select(col("key"), col("value") + 1000).dropDuplicates())
  )

  val unionBelowAggregation: OperatorCase =
    OperatorCase("aggregation above a union of two stateful branches by the same key", Update(), twoInputs = true)(in =>
      in.left.select("key").dropDuplicates("key")
        .union(in.right.select("key").dropDuplicates("key"))
        .groupBy("key")
        .agg(count("*"))
    )

  private val unionOfInputs = OperatorCase("aggregation above a union of inputs", Update(), twoInputs = true)(in =>
    in.left.union(in.right).groupBy("key").agg(count("*"))
  )

  private val unionOfOneSource = OperatorCase("union of one source with itself, each branch stateful", Append()) { in =>
    def branch = in.left.select("key", "value").dropDuplicates("key", "value")
    branch.union(branch)
  }

  private val selfJoin = OperatorCase("self join", Append(), stock = Engine.RocksDb) { in =>
    val rows = in.left.select("key", "value")
    rows.as("a").join(rows.as("b"), expr("a.key = b.key"))
  }

  private val joinThenAggregation =
    OperatorCase("join, then window aggregation", Append(), stock = Engine.RocksDb, twoInputs = true)(
      StreamJoinCases.ranged(_, "inner").groupBy(window(col("leftTime"), "5 seconds"), col("leftKey")).agg(count("*"))
    )

  private val outerJoinThenAggregation =
    OperatorCase("outer join, then window aggregation", Append(), stock = Engine.RocksDb, twoInputs = true)(
      StreamJoinCases.ranged(
        _,
        "left_outer"
      ).groupBy(window(col("leftTime"), "5 seconds")).agg(count("*"), count("value"))
    )

  private val dedupThenJoin =
    OperatorCase("dropDuplicates, then join by the same key", Append(), stock = Engine.RocksDb, twoInputs = true)(in =>
      in.left.select("key").dropDuplicates("key").join(in.right.select("key", "value"), "key")
    )

  private val dedupWithinWatermarkThenJoin =
    OperatorCase("dropDuplicatesWithinWatermark, then join", Append(), stock = Engine.RocksDb, twoInputs = true)(in =>
      in.left
        .select(col("key"), timestamp_seconds(col("batch") * 5 + col("key") % 4).as("leftTime"))
        .withWatermark("leftTime", "3 seconds")
        .dropDuplicatesWithinWatermark("key")
        .join(in.rightWatermarked.select("key", "value", "ts"), "key")
        .select("key", "value")
    )

  /** Three stateful operators in one stage. */
  val aggregationsThenJoin: OperatorCase =
    OperatorCase("join of two window aggregations", Append(), stock = Engine.RocksDb, twoInputs = true) { in =>
      val counts = in.leftWatermarked.groupBy(window(col("ts"), "5 seconds"), col("key")).agg(count("*").as("n"))
      val totals = in.rightWatermarked.groupBy(window(col("ts"), "5 seconds"), col("key")).agg(sum("value").as("total"))
      counts.join(totals, Seq("window", "key"))
    }

  val all: Seq[OperatorCase] =
    Seq(chainedWindows, chainedWindowsOtherKey, twoKeys, unionOfBranches, unionBelowAggregation, unionOfInputs) ++
      Seq(unionOfOneSource, selfJoin, joinThenAggregation, outerJoinThenAggregation, dedupThenJoin) ++
      Seq(dedupWithinWatermarkThenJoin, aggregationsThenJoin)
}
