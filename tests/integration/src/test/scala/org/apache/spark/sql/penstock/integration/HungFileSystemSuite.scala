package org.apache.spark.sql.penstock.integration

import java.nio.file.Path

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.commit.{DriverMetrics, StateCommits}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQuery

import com.codahale.metrics.MetricRegistry
import io.penstock.{Patience, Penstock, SameOnEverySpark}
import org.scalatest.concurrent.TimeLimits
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Minutes, Span}

/** The file system of one query hangs, while other queries run, start, stop and are inspected undisturbed. */
@SameOnEverySpark
class HungFileSystemSuite extends AnyFunSuite with PenstockApplication with TimeLimits with Patience {
  private val values = 1L to 50L

  /** More than the number of driver threads that accept commits. */
  private val hangingTasks = 18

  override protected def master: String = s"local[${hangingTasks + 2},4]"

  override protected def applicationConf: Map[String, String] = Map(
    HeldFileManager.Setting,
    "spark.penstock.shards" -> "24",
    "spark.sql.streaming.minBatchesToRetain" -> "1",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1"
  )

  private class Counting(name: String, conf: (String, String)*) {
    private val session = application.newSession()
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    private val source = MemoryStream[Long](Encoders.scalaLong, session)
    val checkpoint: Path = newDirectory("checkpoint")
    private var batches = 0
    private var running = start()

    private def start(): StreamingQuery = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", checkpoint.toString)
      .option("penstock.tasks", "1")
      .queryName(name)
      .format("memory")
      .start()

    def query: StreamingQuery = running

    def add(): Unit = {
      source.addData(values)
      batches += 1
    }

    /** Waits for all batches and checks their counts. */
    def finish(): Unit = {
      query.processAllAvailable()
      assert(session.table(name).collect().map(_.getLong(1)).toSeq == Seq.fill(values.size)(batches.toLong))
    }

    def batch(): Unit = {
      add()
      finish()
    }

    def restart(): Unit = {
      query.stop()
      running = start()
    }
  }

  private def metrics(): Unit = {
    val registry = new MetricRegistry
    DriverMetrics.register(registry, StateCommits.current)
    registry.getGauges.values.forEach(_.getValue: Unit)
  }

  Seq(
    ("state/_penstock/manifests", Seq.empty),
    ("state/_penstock/epochs", Seq.empty),
    ("state/_penstock/snapshots", Seq.empty),
    ("state/_penstock/changelogs", Seq("spark.penstock.state.inlineBytes" -> "0")),
    ("state/_penstock", Seq.empty),
    ("", Seq.empty)
  ).zipWithIndex.foreach { case ((folder, conf), i) =>
    test(s"hanging operations in ${if (folder.isEmpty) "the whole checkpoint" else folder} do not affect others") {
      val slow = new Counting(s"slow$i", conf: _*)
      val other = new Counting(s"other$i")
      val queries = Seq(slow, other)
      try {
        // These batches make something to clean and to write snapshots of.
        (1 to 3).foreach(_ => queries.foreach(_.batch()))
        HeldFileManager.holdAt(slow.checkpoint.resolve(folder))
        // Creates another routing version.
        Penstock.setOption(slow.query, "tasks", hangingTasks.toString)
        slow.add()
        failAfter(Span(2, Minutes)) {
          eventually(assert(HeldFileManager.waiting > 0))
          (1 to 6).foreach(_ => other.batch())
          Penstock.setOption(other.query, "tasks", "2")
          Penstock.pin(other.query, 1L)
          metrics()
          (1 to 2).foreach(_ => other.batch())
          other.restart()
          other.batch()
          val third = new Counting(s"third$i")
          try third.batch()
          finally third.query.stop()
        }
        assert(HeldFileManager.waiting > 0)
        HeldFileManager.release()
        slow.finish()
      } finally {
        HeldFileManager.release()
        queries.foreach(_.query.stop())
      }
    }
  }
}
