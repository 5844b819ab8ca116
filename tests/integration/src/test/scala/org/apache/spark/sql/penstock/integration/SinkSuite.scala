package org.apache.spark.sql.penstock.integration

import java.nio.file.Path

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.{DataStreamWriter, StreamingQueryProgress, Trigger}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row, classic}

import org.scalatest.funsuite.AnyFunSuite

/** Stateful queries with each of Spark's sinks, through the public interface, with a restart before every input. */
class SinkSuite extends AnyFunSuite with PenstockApplication {
  private val inputs = 4
  private val engines = EnginePair.of(Engine.HdfsBacked, OperatorCase.Shards, TestSeed.of("sinks"))

  /** A query on one engine, with its own session and checkpoint. */
  private class Writing(engine: Engine) {
    val session: classic.SparkSession = engine.session(application)
    val checkpoint: Path = newDirectory("checkpoint")
    private val source = MemoryStream[Event](Encoders.product[Event], session)
    private val generator = new EventGenerator(TestSeed.of("sinks"))

    private def rows: DataFrame = source.toDF().withColumn("ts", timestamp_seconds(col("time")))

    def counts: DataFrame = rows.groupBy("key").agg(count("*").as("n"), sum("value").as("total"))

    def windows: DataFrame =
      rows.withWatermark("ts", "3 seconds").groupBy(window(col("ts"), "5 seconds"), col("key")).agg(count("*").as("n"))

    /** Runs the query once per input, each time from its checkpoint. */
    def run(mode: String, query: => DataFrame)(
        sink: DataStreamWriter[Row] => DataStreamWriter[Row]
    ): Seq[StreamingQueryProgress] = {
      val progress = (0 until inputs).flatMap { input =>
        source.addData(generator.input(input, 60))
        val writer = query.writeStream
          .outputMode(mode)
          .option("checkpointLocation", checkpoint.toString)
          .options(engine.queryOptions(input))
          .trigger(Trigger.AvailableNow())
        PublicRun.toTheEnd(sink(writer)).recentProgress
      }
      val recorded = Engine.recordedConf(checkpoint)
      assert(recorded(Engine.ProviderKey) == engine.provider)
      progress
    }
  }

  private def rendered(rows: DataFrame): Seq[String] = rows.collect().map(Rendering.of).sorted.toSeq

  private def assertSame(answer: Writing => Seq[String]): Unit = withClue(TestSeed.clue) {
    val expected = answer(new Writing(engines.reference))
    val found = answer(new Writing(engines.subject))
    assert(expected.nonEmpty)
    assert(found == expected)
  }

  test("foreachBatch with one action on the batch") {
    assertSame(foreachBatch(batch => rendered(batch)))
  }

  test("foreachBatch with several actions on the batch, which all see the same rows") {
    assertSame(foreachBatch { batch =>
      val all = rendered(batch)
      assert(batch.count() == all.size)
      assert(rendered(batch.filter("key >= 0")) == all)
      all :+ rendered(batch.groupBy().agg(sum("n"), sum("total"))).head
    })
  }

  test("foreachBatch with a persisted batch") {
    assertSame(foreachBatch { batch =>
      val kept = batch.persist()
      try rendered(kept) ++ rendered(kept.filter("n > 1"))
      finally kept.unpersist()
    })
  }

  private def foreachBatch(look: DataFrame => Seq[String])(writing: Writing): Seq[String] = {
    val seen = mutable.ArrayBuffer.empty[String]
    writing.run("update", writing.counts)(_.foreachBatch { (batch: Dataset[Row], id: Long) =>
      seen ++= look(batch).map(row => s"$id $row")
      ()
    })
    seen.toSeq
  }

  test("memory sink") {
    assertSame { writing =>
      val table = "counts"
      writing.run("complete", writing.counts)(_.format("memory").queryName(table))
      rendered(writing.session.table(table))
    }
  }

  test("file sink") {
    assertSame { writing =>
      val output = newDirectory("parquet").toString
      writing.run("append", writing.windows)(_.format("parquet").option("path", output))
      rendered(writing.session.read.parquet(output))
    }
  }

  test("noop sink, compared by the number of state rows") {
    assertSame { writing =>
      writing
        .run("update", writing.counts)(_.format("noop"))
        .flatMap(batch => batch.stateOperators.map(op => s"${batch.batchId}: ${op.numRowsTotal} ${op.numRowsUpdated}"))
    }
  }
}
