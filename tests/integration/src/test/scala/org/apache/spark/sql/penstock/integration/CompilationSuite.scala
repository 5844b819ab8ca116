package org.apache.spark.sql.penstock.integration

import org.apache.spark.metrics.source.CodegenMetrics
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.{DataFrame, Encoders}

import org.scalatest.funsuite.AnyFunSuite

/** Generated code that changes from batch to batch is compiled in every batch, which takes tens of milliseconds. */
class CompilationSuite extends AnyFunSuite with PenstockApplication {
  import CompilationSuite._

  private val queries = Seq[(String, DataFrame => DataFrame)](
    "aggregation" -> (_.groupBy("key").agg(count(lit(1)), max("value"))),
    "deduplication" -> (_.dropDuplicates("key", "ts")),
    "session windows" -> (_.groupBy(session_window(col("ts"), "2 seconds"), col("key")).agg(sum("value"))),
    "join" -> (rows => {
      def side(name: String) = rows.select(col("key").as(s"key_$name"), col("ts").as(s"ts_$name"))
      side("a").join(side("b"), expr("key_a = key_b and ts_b between ts_a and ts_a + interval 2 seconds"))
    })
  )

  queries.foreach { case (name, build) =>
    test(s"$name: later batches compile as many classes as plain Spark") {
      val stock =
        compiled(name, build, Map(SQLConf.STATE_STORE_PROVIDER_CLASS.key -> HdfsBacked, StatePartitions -> "2"))
      val ours = compiled(name, build, Map.empty)
      assert(ours.head > 0 && stock.head > 0, "the metric counts no compilation")
      // A moving watermark is a constant in the code, in plain Spark too.
      assert(ours.tail == stock.tail)
    }
  }

  /** Number of classes compiled in the first batches, and in each later batch. */
  private def compiled(name: String, build: DataFrame => DataFrame, conf: Map[String, String]): Seq[Long] = {
    val session = application.newSession()
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    val source = MemoryStream[Event](Encoders.product[Event], session)
    val generator = new EventGenerator(seed = 11)
    val rows = source.toDF().withColumn("ts", timestamp_seconds(col("time"))).withWatermark("ts", "5 seconds")
    val query = build(rows).writeStream
      .outputMode(if (name == "aggregation") "update" else "append")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .format("noop")
      .start()
    def batches(from: Int, until: Int): Long = {
      val before = CodegenMetrics.METRIC_COMPILATION_TIME.getCount
      (from until until).foreach { i =>
        source.addData(generator.input(i, 100))
        query.processAllAvailable()
      }
      CodegenMetrics.METRIC_COMPILATION_TIME.getCount - before
    }
    try batches(0, 4) +: (4 until 8).map(i => batches(i, i + 1))
    finally query.stop()
  }
}

object CompilationSuite {
  private val HdfsBacked = classOf[HDFSBackedStateStoreProvider].getName
  private val StatePartitions = SQLConf.STATEFUL_SHUFFLE_PARTITIONS_INTERNAL.key
}
