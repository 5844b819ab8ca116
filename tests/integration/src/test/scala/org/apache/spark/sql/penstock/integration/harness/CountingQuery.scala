package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.Path

import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.streaming.{StreamingQueryProgress, Trigger}
import org.apache.spark.sql.{Dataset, Encoders, Row, classic}

/** A small stateful query over files that any application can continue from its checkpoint. */
final class CountingQuery private (source: Path, val checkpoint: Path, location: String, private var inputs: Int) {
  def this(source: Path, checkpoint: Path) = this(source, checkpoint, checkpoint.toString, 0)

  /**
   * The same query with its checkpoint moved.
   *
   * @param location
   *   Location of the checkpoint as given to the query
   */
  def movedTo(checkpoint: Path, location: String): CountingQuery =
    new CountingQuery(source, checkpoint, location, inputs)

  /**
   * Adds a file of events and runs the query until all files are read.
   *
   * @param condition
   *   Filter condition of the query's rows
   * @return
   *   Counts by key of the last batch, and the progress of the run
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

  /** As [[runOn]], without a new file. */
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

  /** The state as Spark's state reader shows it. */
  def state(session: classic.SparkSession): Map[Long, Long] =
    session.read.format("statestore").load(location).select("key.key", "value.count").collect()
      .map(row => row.getLong(0) -> row.getLong(1)).toMap

  /** The counts that all files give. */
  def expected: Map[Long, Long] = expectedOf(inputs)

  /** The counts that the first `files` files give. */
  def expectedOf(files: Int): Map[Long, Long] = (0 until files).flatMap(events).groupMapReduce(_.key)(_ => 1L)(_ + _)

  private def events(input: Int): Seq[Event] = new EventGenerator(seed = 17L + input).input(input, 80)
}
