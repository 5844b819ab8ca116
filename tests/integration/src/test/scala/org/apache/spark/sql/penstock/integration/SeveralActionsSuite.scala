package org.apache.spark.sql.penstock.integration

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.{Dataset, Encoders, Row}

import org.scalatest.funsuite.AnyFunSuite

/** The cost of further actions of a foreachBatch function on a batch: each may write one manifest, not one per task. */
class SeveralActionsSuite extends AnyFunSuite with PenstockApplication {
  private val batches = 3
  private val tasks = 16
  private val engine = Engine.penstock(shards = 32, policy = "static")
    .copy(queryOptions = _ => Map("penstock.policy" -> "static", "penstock.tasks" -> tasks.toString))

  /** Number of manifests of each batch. */
  private def manifests(actions: Int): Map[Long, Int] = {
    val session = engine.session(application)
    val checkpoint = newDirectory("checkpoint")
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    var tasksOf = Set.empty[Int]
    val query = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("update")
      .option("checkpointLocation", checkpoint.toString)
      .options(engine.queryOptions(0))
      .foreachBatch { (batch: Dataset[Row], id: Long) =>
        (1 to actions).foreach { action =>
          val counts = batch.collect().map(_.getLong(1)).toSeq
          assert(counts == Seq.fill(100)(id + 1L), s"batch $id, action $action")
        }
        tasksOf += batch.rdd.getNumPartitions
      }
      .start()
    try (1 to batches).foreach { _ =>
        source.addData(1L to 100L)
        query.processAllAvailable()
      }
    finally query.stop()
    assert(tasksOf == Set(tasks))
    files(checkpoint.resolve("state").resolve("_penstock").resolve("manifests"))
      .groupMapReduce(_.takeWhile(_.isDigit).toLong)(_ => 1)(_ + _)
  }

  private def files(folder: Path): Seq[String] =
    Using.resource(
      Files.list(folder)
    )(_.iterator.asScala.map(_.getFileName.toString).filterNot(_.startsWith(".")).toSeq)

  test("three actions write at most two manifests more than one action") {
    val one = manifests(actions = 1)
    val three = manifests(actions = 3)
    assert(one.size == batches && three.keySet == one.keySet)
    assert(one.forall { case (batch, count) => three(batch) <= count + 2 }, s"with one action $one, with three $three")
  }
}
