package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness.{Brief, Equivalence, OperatorCase}
import org.apache.spark.sql.streaming.OutputMode.{Append, Complete, Update}

/** Grouping in every output mode, over windows, with every kind of key and of aggregate buffer. */
object AggregationCases {

  val updateMode: OperatorCase = OperatorCase("aggregation, update", Update())(
    _.left.groupBy("key").agg(count("*").as("n"), sum("value").as("total"))
  )

  val appendMode: OperatorCase = OperatorCase("aggregation, append with eviction", Append())(
    _.leftWatermarked.groupBy(window(col("ts"), "5 seconds"), col("key")).agg(count("*").as("n"), sum("value"))
  )

  val slidingWindow: OperatorCase = OperatorCase("aggregation, update over sliding windows with eviction", Update())(
    _.leftWatermarked.groupBy(window(col("ts"), "5 seconds", "2 seconds"), col("key")).agg(count("*").as("n"))
  )

  val completeMode: OperatorCase = OperatorCase("aggregation, complete", Complete())(
    _.left.groupBy("key").agg(count("*").as("n"), sum("value").as("total"))
  )

  private val completeOrdered =
    OperatorCase("aggregation, complete and ordered", Complete(), equivalence = Equivalence.SameOrder)(
      _.left.groupBy("key").agg(count("*").as("n")).orderBy(desc("n"), col("key"))
    )

  private val having = OperatorCase("aggregation in SQL with having, complete", Complete()) { in =>
    in.left.createOrReplaceTempView("events")
    in.session.sql("select key, count(*) n, max(value) from events group by key having n > 2")
  }

  val global: OperatorCase = OperatorCase("global aggregation", Update(), unrouted = Some("one partition"))(
    _.left.agg(count("*").as("n"), sum("value"))
  )

  private val objectBuffer = OperatorCase("aggregation with an object buffer", Update())(
    _.left.groupBy("key").agg(sort_array(collect_set("value")), percentile_approx(col("value"), lit(0.5), lit(1000)))
  )

  private val distinctBySketch = OperatorCase("aggregation with a sketch", Update())(
    _.left.groupBy("key").agg(approx_count_distinct("value"))
  )

  private val formatVersion1 =
    OperatorCase(
      "aggregation, state format 1",
      Update(),
      conf = Map("spark.sql.streaming.aggregation.stateFormatVersion" -> "1")
    )(_.left.groupBy("key").agg(count("*").as("n")))

  private val manyShards = updateMode.copy(name = "aggregation, 256 shards", shards = 256)(updateMode.query)

  private val oneShard = updateMode.copy(name = "aggregation, 1 shard", shards = 1)(updateMode.query)

  /** Key expressions, named by their difficulty. */
  private val keyTypes = Seq(
    "string and empty string" -> "if(key % 5 = 0, '', concat('k', key % 7))",
    "null" -> "if(key % 3 = 0, null, key)",
    "negative and positive zero" -> "if(key % 2 = 0, -0.0D, 0.0D) * (key % 3)",
    "NaN and infinities" -> "cast(element_at(array('NaN', 'Infinity', '-Infinity', '1'), cast(key % 4 + 1 as int)) as double)",
    "float" -> "cast(key % 5 as float) / 3",
    "struct" -> "named_struct('a', key % 5, 'b', cast(key % 2 as string), 'c', if(key % 3 = 0, null, key % 3))",
    "array" -> "array(key % 3, if(key % 2 = 0, null, key % 5))",
    "struct of array of struct" -> "named_struct('a', array(named_struct('b', key % 3, 'c', cast(key % 2 as string))))",
    "small decimal" -> "cast(key % 9 as decimal(9, 2)) / 4",
    "large decimal" -> "cast(key % 9 as decimal(38, 6)) * 12345678901234567890.5",
    "date" -> "date_add(date'1969-12-28', cast(key % 8 as int))",
    "timestamp" -> "timestamp_seconds(key % 6 - 3)",
    "timestamp without zone" -> "cast(timestamp_seconds(key % 6) as timestamp_ntz)",
    "interval" -> "make_dt_interval(0, 0, cast(key % 6 as int))",
    "boolean" -> "key % 2 = 0",
    "map" -> "if(key % 2 = 0, map(key % 3, 1, 7, key % 5), map(7, key % 5, key % 3, 1))",
    "binary" -> "cast(concat('k', key % 7) as binary)"
  ).map { case (name, expression) =>
    OperatorCase(s"aggregation by $name", Update())(
      _.left.selectExpr(s"$expression as k", "value").groupBy("k").agg(sum("value").as("total"), count("*"))
    )
  }

  private val severalKeys = OperatorCase("aggregation by several keys", Update())(
    _.left
      .selectExpr(
        "cast(key % 7 as string) s",
        "if(key % 3 = 0, null, key) n",
        "key * -0.0D z",
        "array(key % 2) a",
        "value"
      )
      .groupBy("s", "n", "z", "a")
      .agg(sum("value"))
  )

  val all: Seq[OperatorCase] =
    Seq(updateMode, appendMode, slidingWindow, completeMode, completeOrdered, having, global, objectBuffer) ++
      Seq(distinctBySketch, formatVersion1, manyShards, oneShard, severalKeys) ++ Brief.someOf(keyTypes)
}
