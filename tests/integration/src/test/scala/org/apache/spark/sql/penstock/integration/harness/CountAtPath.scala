package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.Path

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, sum}
import org.apache.spark.sql.{Dataset, Encoders, Row, classic}

/** A count and sum by key with a checkpoint at a path that earlier checkpoints have used. */
final class CountAtPath(application: classic.SparkSession, val checkpoint: Path) {

  /**
   * Runs the query with one input per batch.
   *
   * @param inputs
   *   Inputs of all batches of the checkpoint
   * @param done
   *   Number of batches that the checkpoint already has
   * @return
   *   Rows of each of the other batches for all keys
   */
  def run(engine: Engine, inputs: Seq[Seq[Event]], done: Int = 0): Map[Long, Seq[String]] = {
    val session = engine.session(application)
    val source = MemoryStream[Event](Encoders.product[Event], session)
    var answers = Map.empty[Long, Seq[String]]
    inputs.take(done).foreach(source.addData(_))
    val query = source.toDF().groupBy("key").agg(count("*").as("n"), sum("value").as("total")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", checkpoint.toString)
      .options(engine.queryOptions(done))
      .foreachBatch((batch: Dataset[Row], id: Long) => answers += id -> rendered(batch))
      .start()
    try inputs.drop(done).foreach { input =>
        source.addData(input)
        query.processAllAvailable()
      }
    finally query.stop()
    answers
  }

  /** The state after a batch, as Spark's state reader shows it. */
  def stateAfter(batch: Long): Seq[String] = rendered(
    application.newSession().read.format("statestore").option("batchId", batch).load(checkpoint.toString)
      .selectExpr("key.key", "value.*")
  )

  private def rendered(rows: Dataset[Row]): Seq[String] = rows.collect().map(Rendering.of).sorted.toSeq
}

object CountAtPath {

  /** Inputs with keys from `firstKey` on. */
  def inputs(seed: Long, firstKey: Long, count: Int): Seq[Seq[Event]] = {
    val generator = new EventGenerator(seed)
    Seq.tabulate(count)(number => generator.input(number, 60).map(event => event.copy(key = event.key + firstKey)))
  }

  /** The expected rows of every batch. */
  def expected(inputs: Seq[Seq[Event]]): Map[Long, Seq[String]] = inputs.indices.map { batch =>
    val byKey = inputs.take(batch + 1).flatten.groupBy(_.key)
    batch.toLong -> byKey.map { case (key, rows) => s"[$key, ${rows.size}, ${rows.map(_.value).sum}]" }.toSeq.sorted
  }.toMap
}
