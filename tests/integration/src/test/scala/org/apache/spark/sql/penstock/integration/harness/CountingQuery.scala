package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.Path

import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.streaming.{StreamingQueryProgress, Trigger}
import org.apache.spark.sql.{Dataset, Encoders, Row, classic}

/** A small stateful query over files, which any application can go on with from its checkpoint. */
final class CountingQuery private (source: Path, val checkpoint: Path, location: String, private var inputs: Int) {
  def this(source: Path, checkpoint: Path) = this(source, checkpoint, checkpoint.toString, 0)

  /**
   * The same query, whose checkpoint has been brought elsewhere.
   *
   * @param location
   *   how the query is told of it
   */
  def movedTo(checkpoint: Path, location: String): CountingQuery =
    new CountingQuery(source, checkpoint, location, inputs)

  /**
   * Adds one file of events and runs the query until all files are read.
   *
   * @param condition
   *   that rows have to satisfy
   * @return
   *   counts by key as the last batch gave them, and the run's progress
   */
  def runOn(
      session: classic.SparkSession,
      options: Map[String, String] = Map.empty,
      condition: String = "true"
  ): (Map[Long, Long], Seq[StreamingQueryProgress]) = {
    EventFiles.write(source, inputs, events(inputs))
    inputs += 1
    goOn(session, options, condition)
  }

  /** As [[runOn]], with the files that are there. */
  def goOn(
      session: classic.SparkSession,
      options: Map[String, String] = Map.empty,
      condition: String = "true"
  ): (Map[Long, Long], Seq[StreamingQueryProgress]) = {
    var counts = Map.empty[Long, Long]
    val query = PublicRun.toTheEnd(
      session.readStream
        .schema(Encoders.product[Event].schema)
        .json(source.toString)
        .where(condition)
        .groupBy("key")
        .agg(count(lit(1)).as("n"))
        .writeStream
        .outputMode("complete")
        .option("checkpointLocation", location)
        .options(options)
        .trigger(Trigger.AvailableNow())
        .foreachBatch { (batch: Dataset[Row], _: Long) =>
          counts = batch.collect().map(row => row.getLong(0) -> row.getLong(1)).toMap
        }
    )
    (counts, query.recentProgress.toSeq)
  }

  /** Its state, as Spark's reader of state shows it. */
  def state(session: classic.SparkSession): Map[Long, Long] =
    session.read.format("statestore").load(location).select("key.key", "value.count").collect()
      .map(row => row.getLong(0) -> row.getLong(1)).toMap

  /** The counts that the query should have given by now. */
  def expected: Map[Long, Long] = expectedOf(inputs)

  /** The counts that the first so many files give. */
  def expectedOf(files: Int): Map[Long, Long] = (0 until files).flatMap(events).groupMapReduce(_.key)(_ => 1L)(_ + _)

  private def events(input: Int): Seq[Event] = new EventGenerator(seed = 17L + input).input(input, 80)
}
