package org.apache.spark.sql.penstock.integration

import java.nio.file.Path

import scala.collection.mutable

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.{DataStreamWriter, StreamingQuery, Trigger}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row}

import org.scalatest.funsuite.AnyFunSuite

/** The same files in the same order under each trigger, with a restart in between. */
class TriggerSuite extends AnyFunSuite with PenstockApplication {
  private val filesPerRun = 3
  private val engines = EnginePair.of(Engine.HdfsBacked, OperatorCase.Shards, TestSeed.of("triggers"))

  test("available now runs several batches") {
    assertSame(onlyBatchOf = false)(write => PublicRun.toTheEnd(write.trigger(Trigger.AvailableNow())))
  }

  test("processing time") {
    assertSame(onlyBatchOf = false) { write =>
      val query = write.trigger(Trigger.ProcessingTime("20 milliseconds")).start()
      try query.processAllAvailable()
      finally query.stop()
      query
    }
  }

  test("once runs everything in one batch") {
    assertSame(onlyBatchOf = true)(write => PublicRun.toTheEnd(write.trigger(Triggers.once)))
  }

  private def assertSame(onlyBatchOf: Boolean)(run: DataStreamWriter[Row] => StreamingQuery): Unit =
    withClue(TestSeed.clue) {
      val (expected, batches) = answer(engines.reference, run)
      val (found, _) = answer(engines.subject, run)
      assert(expected.nonEmpty)
      assert(found == expected)
      assert(if (onlyBatchOf) batches == 2 else batches >= 2 * filesPerRun)
    }

  /** The sorted rows of two runs of the query, and the number of batches with input. */
  private def answer(engine: Engine, run: DataStreamWriter[Row] => StreamingQuery): (Seq[String], Int) = {
    val generator = new EventGenerator(TestSeed.of("triggers"))
    val source = newDirectory("source")
    val checkpoint = newDirectory("checkpoint")
    val rows = mutable.ArrayBuffer.empty[String]
    val progress = (0 until 2).flatMap { runNumber =>
      (0 until filesPerRun).foreach { file =>
        val input = runNumber * filesPerRun + file
        EventFiles.write(source, input, generator.input(input, 60))
      }
      val writer = windows(engine, source).writeStream
        .outputMode("append")
        .option("checkpointLocation", checkpoint.toString)
        .options(engine.queryOptions(runNumber))
        .foreachBatch { (batch: Dataset[Row], _: Long) =>
          rows ++= batch.collect().map(Rendering.of)
          ()
        }
      run(writer).recentProgress
    }
    assert(Engine.recordedConf(checkpoint)(Engine.ProviderKey) == engine.provider)
    (rows.sorted.toSeq, progress.filter(_.numInputRows > 0).map(_.batchId).distinct.size)
  }

  private def windows(engine: Engine, source: Path): DataFrame =
    engine
      .session(application)
      .readStream
      .schema(Encoders.product[Event].schema)
      .option("maxFilesPerTrigger", 1)
      .json(source.toString)
      .withColumn("ts", timestamp_seconds(col("time")))
      .withWatermark("ts", "3 seconds")
      .groupBy(window(col("ts"), "5 seconds"), col("key"))
      .agg(count("*").as("n"), sum("value").as("total"))
}
