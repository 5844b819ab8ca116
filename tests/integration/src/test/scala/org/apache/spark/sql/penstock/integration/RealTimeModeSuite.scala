package org.apache.spark.sql.penstock.integration

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.{DataFrame, Encoders, ForeachWriter, Row, classic}
import org.apache.spark.{SPARK_VERSION, SparkIllegalArgumentException}

import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** Queries in Real-Time Mode, which Penstock leaves to Spark. */
class RealTimeModeSuite extends AnyFunSuite with PenstockApplication with Eventually {
  // All stages run at once.
  override protected def master: String = "local[8]"

  override protected def applicationConf: Map[String, String] =
    Applications.FastFiles + ("spark.sql.streaming.realTimeMode.minBatchDuration" -> "1000")

  private val events = new EventGenerator(seed = 5).input(0, 100)

  test("without state: as in plain Spark") {
    val found = run(session, "stateless", events.size)(_.filter("key >= 0").select("key", "value"))
    assert(found.sorted == events.map(e => Rendering.of(Row(e.key, e.value))).sorted)
  }

  test("with state: as in plain Spark where the session names the provider and the number of partitions") {
    assume(checksProvider, "Spark has it from 4.3 on")
    val found = run(session, "stateful", events.size)(_.groupBy("key").agg(count(lit(1)).as("n")))
    // Every row of input gives the new count of its key.
    val expected = events.groupBy(_.key).toSeq.flatMap { case (key, of) =>
      (1L to of.size.toLong).map(n => Rendering.of(Row(key, n)))
    }
    assert(found.sorted == expected.sorted)
  }

  test("with the plugin's provider: Spark refuses, and names the setting") {
    assume(checksProvider, "Spark does so from 4.3 on")
    val e = intercept[SparkIllegalArgumentException](run(application.newSession(), "refused", 1)(_.filter("key >= 0")))
    assert(Errors.missing(
      e,
      SQLConf.STATE_STORE_PROVIDER_CLASS.key,
      classOf[RocksDBStateStoreProvider].getName
    ).isEmpty)
  }

  /** Spark asks every query in this mode for the RocksDB provider by name, whether it has state or not. */
  private def checksProvider: Boolean = {
    val Array(major, minor) = SPARK_VERSION.split('.').take(2).map(_.toInt): @unchecked
    major > 4 || major == 4 && minor >= 3
  }

  private def session: classic.SparkSession = {
    val own = application.newSession()
    if (checksProvider) {
      own.conf.set(SQLConf.STATE_STORE_PROVIDER_CLASS.key, classOf[RocksDBStateStoreProvider].getName)
      own.conf.set(SQLConf.STATEFUL_SHUFFLE_PARTITIONS_INTERNAL.key, "2")
    }
    own
  }

  /** Rows that the sink was given, once there are `expected` of them and a batch has ended. */
  private def run(session: classic.SparkSession, name: String, expected: Int)(
      of: DataFrame => DataFrame
  ): Seq[String] = {
    val source = new LowLatencyMemoryStream[Event](1, session)(Encoders.product[Event])
    source.addData(events)
    val query = of(source.toDF()).writeStream
      .outputMode("update")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .trigger(Trigger.RealTime("2 seconds"))
      .foreach(new Collecting(name))
      .start()
    try {
      eventually(timeout(60.seconds), interval(50.milliseconds)) {
        assert(query.exception.isEmpty)
        assert(Collecting.rows(name).size >= expected && query.lastProgress != null)
      }
      assert(query.lastProgress.observedMetrics.isEmpty, "Penstock took part")
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
