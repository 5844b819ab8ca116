package org.apache.spark.sql.penstock.telemetry

import java.nio.file.Files
import java.util.UUID

import scala.collection.mutable

import org.apache.spark.SparkEnv
import org.apache.spark.scheduler.{SparkListener, SparkListenerStageSubmitted, SparkListenerTaskEnd}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.penstock.commit.StateCommits
import org.apache.spark.sql.penstock.report.ReportRows
import org.apache.spark.sql.penstock.routing.{LocalSpark, RoutingExtensions}
import org.apache.spark.sql.{Encoders, Row, SparkSessionExtensions}

import io.penstock.PenstockStateStoreProvider
import io.penstock.control.{Attributing, Measured, Placing}
import io.penstock.sharding.Layout
import io.penstock.sidecars.planner.PlanMessages
import org.scalatest.funsuite.AnyFunSuite

/** The size of the load measurements of a batch, in bytes. */
class TelemetrySizeSuite extends AnyFunSuite with LocalSpark {
  private val shards = 4096
  private val tasks = 16
  private val maxBytes = 1L << 20

  override protected def extensions: Option[SparkSessionExtensions => Unit] =
    Some(new RoutingExtensions()(_))

  override protected def conf: Map[String, String] = Map(
    "spark.sql.streaming.stateStore.providerClass" -> classOf[PenstockStateStoreProvider].getName,
    "spark.sql.shuffle.partitions" -> shards.toString,
    "spark.sql.streaming.noDataMicroBatches.enabled" -> "false"
  )

  test(s"the load measurements of a batch with $shards shards take less than 1 MiB") {
    val results = new ResultSizes
    spark.sparkContext.addSparkListener(results)
    val in = MemoryStream[Long](Encoders.scalaLong, spark)
    val query = in.toDS().groupBy("value").count().writeStream.outputMode("update").format("noop")
      .option("penstock.tasks", tasks.toLong)
      .option("checkpointLocation", Files.createTempDirectory(scratch, "c").toString)
      .start()
    try {
      Seq(0L, 1L).foreach { _ =>
        in.addData(0L until 10L * shards)
        query.processAllAvailable()
      }
      spark.sparkContext.listenerBus.waitUntilEmpty()
      val progress = query.recentProgress.filter(_.durationMs.containsKey("addBatch")).last
      val region = ReportRows.of(progress).get.getSeq[Row](4).head
      assert(region.getAs[Int]("tasks") == tasks && region.getAs[Long]("rows") == 10L * shards)
      val state = StateCommits.current.leases.stateLoads(query.runId, 0L).values.head
      // All shards are reported, so each of the parts below has its full size.
      assert(state.keys.toSeq.forall(_ > 0) && state.keys.length == shards)
      val parts = Map(
        "results of tasks" -> results.ofBatch(query.id, progress.batchId),
        "state" -> SparkEnv.get.closureSerializer.newInstance().serialize(state).limit().toLong,
        "sidecar" -> PlanMessages.body(everything(query.runId)).length.toLong,
        "progress" -> progress.json.length.toLong
      )
      info(s"bytes: $parts")
      assert(parts.values.forall(_ > 0) && parts.values.sum < maxBytes, parts)
    } finally query.stop()
  }

  /** A message to the sidecar with all possible columns. */
  private def everything(run: UUID): Measured = {
    val (numbers, places) = (new Array[Long](shards), new Array[Int](shards))
    Measured(
      run,
      region = 0,
      batch = 1,
      tasks,
      tasks,
      stageMs = 1,
      Seq.fill(tasks)(1.0),
      numbers,
      numbers,
      placing = Some(Placing("mixed", 1.05, tasks, places, numbers)),
      attributing = Some(Attributing(Layout(shards), places))
    )
  }

  /** Counts the bytes that tasks send to the driver with their results, including accumulators. */
  private class ResultSizes extends SparkListener {
    private val bytes = mutable.Map.empty[(String, Long), Long]
    private val batchOfStage = mutable.Map.empty[Int, (String, Long)]

    override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit = synchronized {
      for (properties <- Option(event.properties); id <- Option(properties.getProperty("sql.streaming.queryId")))
        batchOfStage(event.stageInfo.stageId) = id -> properties.getProperty("streaming.sql.batchId").toLong
    }

    override def onTaskEnd(event: SparkListenerTaskEnd): Unit = synchronized {
      for (batch <- batchOfStage.get(event.stageId))
        bytes(batch) = bytes.getOrElse(batch, 0L) + event.taskMetrics.resultSize
    }

    def ofBatch(query: UUID, batch: Long): Long = synchronized(bytes((query.toString, batch)))
  }
}
