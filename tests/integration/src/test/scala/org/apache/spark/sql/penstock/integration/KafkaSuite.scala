package org.apache.spark.sql.penstock.integration

import scala.util.Try

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.{DataFrame, Encoders, classic}

import org.scalatest.funsuite.AnyFunSuite

/** A stateful query from Kafka to Kafka, with a real broker and a restart before every input. */
class KafkaSuite extends AnyFunSuite with PenstockApplication {
  private val inputs = 4
  private val seed = TestSeed.of("kafka")
  private val engines = EnginePair.of(Engine.HdfsBacked, OperatorCase.Shards, seed)

  test("window aggregation from one topic to another equals plain Spark's") {
    assume(
      Try(Class.forName("org.apache.spark.sql.kafka010.KafkaSourceProvider")).isSuccess,
      "Spark's Kafka connector is not published for this version of Spark"
    )
    withClue(TestSeed.clue)(KafkaBroker.using(newDirectory("kafka")) { broker =>
      val generator = new EventGenerator(seed)
      (0 until inputs).foreach { input =>
        send(broker, generator.input(input, 60))
        Seq(engines.reference -> "reference", engines.subject -> "subject").foreach { case (engine, name) =>
          runOnce(broker, engine, name, input)
        }
      }
      val expected = received(broker, "reference")
      assert(expected.nonEmpty)
      assert(received(broker, "subject") == expected)
    })
  }

  private lazy val sessions = Seq(engines.reference, engines.subject).map(e => e -> e.session(application)).toMap
  private lazy val checkpoints = Seq(engines.reference, engines.subject).map(_ -> newDirectory("checkpoint")).toMap

  private def kafka(broker: KafkaBroker): Map[String, String] = Map("kafka.bootstrap.servers" -> broker.address)

  private def send(broker: KafkaBroker, events: Seq[Event]): Unit =
    application
      .createDataFrame(events)
      .select(col("key").cast("string").as("key"), to_json(struct("*")).as("value"))
      .write
      .format("kafka")
      .options(kafka(broker))
      .option("topic", "events")
      .save()

  private def runOnce(broker: KafkaBroker, engine: Engine, topic: String, run: Int): Unit = {
    val query = PublicRun.toTheEnd(
      windows(broker, sessions(engine)).writeStream
        .format("kafka")
        .options(kafka(broker))
        .option("topic", topic)
        .option("checkpointLocation", checkpoints(engine).toString)
        .options(engine.queryOptions(run))
        .outputMode("append")
        .trigger(Trigger.AvailableNow())
    )
    assert(query.recentProgress.map(_.numInputRows).sum > 0)
    assert(Engine.recordedConf(checkpoints(engine))(Engine.ProviderKey) == engine.provider)
  }

  private def windows(broker: KafkaBroker, session: classic.SparkSession): DataFrame =
    session.readStream
      .format("kafka")
      .options(kafka(broker))
      .option("subscribe", "events")
      .option("startingOffsets", "earliest")
      .load()
      .select(from_json(col("value").cast("string"), Encoders.product[Event].schema).as("event"))
      .select("event.*")
      .withColumn("ts", timestamp_seconds(col("time")))
      .withWatermark("ts", "3 seconds")
      .groupBy(window(col("ts"), "5 seconds"), col("key"))
      .agg(count("*").as("n"), sum("value").as("total"))
      .select(col("key").cast("string").as("key"), to_json(struct("*")).as("value"))

  private def received(broker: KafkaBroker, topic: String): Seq[String] =
    application.read
      .format("kafka")
      .options(kafka(broker))
      .option("subscribe", topic)
      .load()
      .selectExpr("cast(key as string)", "cast(value as string)")
      .collect()
      .map(Rendering.of)
      .sorted
      .toSeq
}
