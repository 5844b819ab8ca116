package org.apache.spark.sql.penstock.integration

import java.nio.file.Path
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkIllegalArgumentException
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.penstock.shims.RealTimeMode
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.{DataFrame, Encoders, ForeachWriter, Row, classic}

import io.penstock.Patience
import org.scalatest.funsuite.AnyFunSuite

/** Queries in Real-Time Mode, which Penstock leaves to Spark. */
class RealTimeModeSuite extends AnyFunSuite with PenstockApplication with Patience {
  // All stages run at the same time.
  override protected def master: String = "local[8]"

  override protected def applicationConf: Map[String, String] =
    Applications.FastFiles + ("spark.sql.streaming.realTimeMode.minBatchDuration" -> "1000")

  private val Partitions = "2"
  private val events = new EventGenerator(seed = 5).input(0, 100)

  test("a stateless query runs as in plain Spark, without any setting") {
    val found = run(session, "stateless", events.size)(_.filter("key >= 0").select("key", "value"))
    assert(found.sorted == events.map(e => Rendering.of(Row(e.key, e.value))).sorted)
  }

  test("a stateful query runs as in plain Spark, which keeps its state") {
    assume(RealTimeMode.refusesOtherProviders, "Spark has it from 4.3 on")
    val checkpoint = newDirectory("checkpoint")
    val found = run(session, "stateful", events.size, checkpoint)(_.groupBy("key").agg(count(lit(1)).as("n")))
    // Every input row gives the new count of its key.
    val expected = events.groupBy(_.key).toSeq.flatMap { case (key, same) =>
      (1L to same.size.toLong).map(n => Rendering.of(Row(key, n)))
    }
    assert(found.sorted == expected.sorted)
    val recorded = Engine.recordedConf(checkpoint)
    assert(recorded(Engine.ProviderKey) == Engine.RocksDb && recorded(Engine.PartitionsKey) == Partitions)
  }

  test("other queries of the same session use Penstock, unless the session says otherwise") {
    val own = session
    run(own, "before", events.size)(_.filter("key >= 0"))
    assert(stateOf(own) == (Engine.PenstockProvider, "256"))
    assert(own.conf.get(Engine.ProviderKey) == application.newSession().conf.get(Engine.ProviderKey))
    own.conf.set(Engine.ProviderKey, Engine.HdfsBacked)
    // Even if the plugin sets the number for the application, a session with another provider keeps its own.
    assert(stateOf(own) == (Engine.HdfsBacked, if (RealTimeMode.refusesOtherProviders) Partitions else "256"))
  }

  test("in a session with Penstock's provider Spark rejects the query, and the error names the setting") {
    assume(RealTimeMode.refusesOtherProviders, "Spark does so from 4.3 on")
    val own = session
    own.conf.set(Engine.ProviderKey, Engine.PenstockProvider)
    val e = intercept[SparkIllegalArgumentException](run(own, "refused", 1)(_.filter("key >= 0")))
    assert(Errors.missing(e, Engine.ProviderKey, Engine.RocksDb).isEmpty)
  }

  private def session: classic.SparkSession = {
    val own = application.newSession()
    own.conf.set("spark.sql.shuffle.partitions", Partitions)
    own
  }

  /** The provider and number of partitions that a micro-batch query of the session stores in its checkpoint. */
  private def stateOf(session: classic.SparkSession): (String, String) = {
    val source = MemoryStream[Event](Encoders.product[Event], session)
    source.addData(events)
    val checkpoint = newDirectory("checkpoint")
    PublicRun.toTheEnd(
      source.toDF().groupBy("key").count().writeStream
        .outputMode("update")
        .option("checkpointLocation", checkpoint.toString)
        .trigger(Trigger.AvailableNow())
        .format("noop")
    )
    val recorded = Engine.recordedConf(checkpoint)
    (recorded(Engine.ProviderKey), recorded(Engine.PartitionsKey))
  }

  /** Rows that the sink received, once there are `expected` of them and a batch has ended. */
  private def run(
      session: classic.SparkSession,
      name: String,
      expected: Int,
      checkpoint: Path = newDirectory("checkpoint")
  )(build: DataFrame => DataFrame): Seq[String] = {
    val source = new LowLatencyMemoryStream[Event](1, session)(Encoders.product[Event])
    source.addData(events)
    val query = build(source.toDF()).writeStream
      .outputMode("update")
      .option("checkpointLocation", checkpoint.toString)
      .trigger(Trigger.RealTime("2 seconds"))
      .foreach(new Collecting(name))
      .start()
    try {
      eventually {
        assert(query.exception.isEmpty)
        assert(Collecting.rows(name).size >= expected && query.lastProgress != null)
      }
      assert(query.lastProgress.observedMetrics.isEmpty, "Penstock was involved in the query")
      Collecting.rows(name)
    } finally query.stop()
  }
}

final private class Collecting(name: String) extends ForeachWriter[Row] {
  override def open(partition: Long, epoch: Long): Boolean = true
  override def process(row: Row): Unit = Collecting.add(name, Rendering.of(row))
  override def close(error: Throwable): Unit = ()
}

private object Collecting {
  private val collected = new ConcurrentLinkedQueue[(String, String)]()
  def add(name: String, row: String): Unit = collected.add(name -> row): Unit
  def rows(name: String): Seq[String] = collected.asScala.toSeq.collect { case (`name`, row) => row }
}
