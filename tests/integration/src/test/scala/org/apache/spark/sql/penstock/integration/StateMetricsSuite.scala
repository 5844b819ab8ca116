package org.apache.spark.sql.penstock.integration

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.sql.{Encoders, Row}

import io.penstock.metrics.{Metric, MetricOutput, Metrics}
import org.scalatest.funsuite.AnyFunSuite

/** Metrics of state in progress and in Spark's metrics system: they have the same names and the same numbers. */
class StateMetricsSuite extends AnyFunSuite with PenstockApplication {
  private val shards = 16
  private val batches = 25

  override protected def applicationConf: Map[String, String] = Applications.FastFiles ++ Map(
    "spark.penstock.shards" -> shards.toString,
    "spark.sql.streaming.minBatchesToRetain" -> "2",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "3"
  )

  private def ofOperator(p: StreamingQueryProgress, m: Metric): Long =
    p.stateOperators.head.customMetrics.get(m.name).longValue

  private def report(p: StreamingQueryProgress): Row = p.observedMetrics.get("penstock")

  test("a query's metrics add up to those in the metrics system") {
    val session = application.newSession()
    val before = PluginMetrics.here
    assert(before.keySet == (Metrics.at(MetricOutput.Executor) ++ Metrics.at(MetricOutput.Driver)).map(_.name).toSet)
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val query = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("update")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .format("noop")
      .start()
    try {
      (1 to batches).foreach { _ =>
        source.addData(1L to 500L)
        query.processAllAvailable()
      }
      val progress = ReportedRegion.withState(query.recentProgress.toSeq)
      assert(progress.size == batches)
      progress.foreach { p =>
        val names = p.stateOperators.head.customMetrics.keySet.asScala.filter(_.startsWith(Metrics.Prefix))
        assert(names == Metrics.at(MetricOutput.Operator).map(_.name).toSet)
      }

      val sources = Seq(Metrics.ShardsInMemory, Metrics.ShardsFolded, Metrics.ShardsLoaded)
      progress.foreach(p => assert(sources.map(ofOperator(p, _)).sum == shards))
      assert(ofOperator(progress.head, Metrics.ShardsInMemory) == shards)
      progress.tail.foreach(p => assert(ofOperator(p, Metrics.ShardsFolded) == shards))

      val after = PluginMetrics.here
      (sources :+ Metrics.CommittedBytes).foreach { m =>
        assert(after(m.name) - before(m.name) == progress.map(ofOperator(_, m)).sum, m.name)
      }
      Seq(Metrics.FoldTime, Metrics.CommitTime).foreach(m => assert(after(m.name) > before(m.name), m.name))
      assert(after(Metrics.ShardsHeld.name) - before(Metrics.ShardsHeld.name) == shards)
      // The last batch's changes are not folded yet, but are also in memory.
      assert(after(Metrics.StateBytes.name) > progress.last.stateOperators.head.memoryUsedBytes / 2)
      assert(after(Metrics.StateMaxBytes.name) == Runtime.getRuntime.maxMemory / 100 * 60)
      assert(after(Metrics.OverlayBytes.name) == 0L)

      val stores = progress.map(p => report(p).getSeq[Row](report(p).fieldIndex("stores")))
      stores.foreach { s =>
        assert(s.map(r => (r.getAs[Long]("operator"), r.getAs[String]("store"))) == Seq((0L, "default")))
      }
      def lag(m: Metric): Seq[Long] = stores.map(_.head.getAs[Long](m.field))
      assert(lag(Metrics.StoreKeys) == 0L +: Seq.fill(batches - 1)(500L))
      assert(lag(Metrics.StoreBytes).head == 0L && lag(Metrics.StoreBytes).tail.forall(_ > 500L * 16))
      val regions = progress.map(p => report(p).getSeq[Row](report(p).fieldIndex("regions")).head)
      assert(lag(Metrics.StoreOperations) == regions.map(_.getAs[Long]("stateOperations")))
      assert(lag(Metrics.StoreOperations).forall(_ >= 1000L))
      assert(lag(Metrics.SnapshotAge).take(2) == Seq(1L, 2L))
      assert(lag(Metrics.SnapshotLagChanges).take(2) == Seq(shards.toLong, 2L * shards))
      assert(lag(Metrics.SnapshotLagBytes).head > 0L)
      // Snapshots are written repeatedly in the background, so the lag does not grow with the number of batches.
      assert(lag(Metrics.SnapshotAge).max < batches, lag(Metrics.SnapshotAge))
      Seq(Metrics.SnapshotAge, Metrics.SnapshotLagChanges, Metrics.SnapshotLagBytes).foreach { m =>
        assert(after(m.name) == lag(m).last, m.name)
      }

      def ofRun(m: Metric): Seq[Long] = progress.map(p => report(p).getAs[Row]("state").getAs[Long](m.field))
      Metrics.at(MetricOutput.Run).foreach { m =>
        val values = ofRun(m)
        assert(values.head == 0L && values == values.sorted && values.last > 0L, s"${m.name}: $values")
        // Background work may have continued after the last batch's progress.
        assert(after(m.name) - before(m.name) >= values.last, m.name)
      }
      assert(ofRun(Metrics.SnapshotShards).last >= ofRun(Metrics.SnapshotFiles).last)
      assert(after(Metrics.SnapshotFailures.name) == before(Metrics.SnapshotFailures.name))
    } finally query.stop()
  }
}
