package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.Path

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Encoders, classic}

/** A query that counts values batch by batch, for tests that change its checkpoint while it runs. */
final class CountingStream(session: classic.SparkSession, checkpoint: Path) {
  private val source = MemoryStream[Long](Encoders.scalaLong, session)

  def start(): StreamingQuery = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
    .outputMode("complete")
    .option("checkpointLocation", checkpoint.toString)
    .queryName("counts")
    .format("memory")
    .start()

  def add(values: Seq[Long]): Unit = source.addData(values): Unit

  /** The count of each value after the last batch. */
  def counts: Seq[Long] = session.table("counts").collect().map(_.getLong(1)).toSeq
}
