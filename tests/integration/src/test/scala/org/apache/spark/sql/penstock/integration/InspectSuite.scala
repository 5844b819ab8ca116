package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/** `penstock inspect --verify` on checkpoints after much cleaning: it finds no problem, and every planted fault. */
@SameOnEverySpark
class InspectSuite extends AnyFunSuite with PenstockApplication {
  private val batches = 40
  private val faults = 3

  override protected def applicationConf: Map[String, String] = Applications.FastFiles ++ Map(
    "spark.penstock.shards" -> "8",
    "spark.sql.streaming.minBatchesToRetain" -> "1",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "50ms"
  )

  private val shapes = for {
    inline <- Seq("in manifests" -> "1m", "in files of their own" -> "0", "in either" -> "600")
    deltas <- Seq(2, 6)
  } yield (inline, deltas)

  for (((where, inlineBytes), deltas) <- shapes)
    test(s"changes are $where, a snapshot every $deltas changes") {
      val session = application.newSession()
      session.conf.set("spark.penstock.state.inlineBytes", inlineBytes)
      session.conf.set("spark.sql.streaming.stateStore.minDeltasForSnapshot", deltas.toString)
      val checkpoint = newDirectory("checkpoint")
      val source = MemoryStream[Long](Encoders.scalaLong, session)
      val query = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
        .outputMode("update")
        .option("checkpointLocation", checkpoint.toString)
        .format("noop")
        .start()
      try
        (1 to batches).foreach { batch =>
          // Shards change only in some batches, so that a few of them need very old manifests.
          source.addData((1L to batch.toLong).filter(_ % 7 == batch % 7))
          query.processAllAvailable()
        }
      finally query.stop()
      (0 until faults).foreach { fault =>
        val seed = TestSeed.of(s"$inlineBytes $deltas $fault")
        Inspection.contradiction(checkpoint, seed).foreach(c => fail(s"$c (${TestSeed.clue})"))
      }
    }
}
