package io.penstock.benchmarks

import java.nio.file.{Files, Path}
import java.util.UUID

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery}
import org.apache.spark.sql.{DataFrame, SparkSession}

import io.penstock.benchmarks.source.{ArrivingSource, BatchSizes, GatedSource}
import io.penstock.benchmarks.work.Operator

/**
 * Everything that a side's query needs to start: settings of its session, gate and checkpoint.
 *
 * @param label
 *   labels that identify this case in its comparison, besides the side and the file manager
 * @param every
 *   the side takes part in one of `every` rounds
 */
final class SideSetup(
    val side: Side,
    manager: FileManager,
    label: Map[String, String],
    every: Int,
    checkpoints: Path
) {
  val gate: String = s"${side.name}-${UUID.randomUUID()}"
  val checkpoint: Path = Files.createTempDirectory(checkpoints, s"${side.name}-")

  /** Settings of the side's session. */
  val settings: Map[String, String] = SideSetup.common ++ manager.settings ++ side.settings

  /** A new session that differs from `spark` only in the side's settings. */
  def session(spark: SparkSession): SparkSession = {
    val own = spark.newSession()
    settings.foreach { case (k, v) => own.conf.set(k, v) }
    own
  }

  /** The numbers 0, 1, 2, ... with `rows` in each batch, made by `partitions` map tasks. */
  def numbers(session: SparkSession, rows: Int, partitions: Int): DataFrame =
    numbers(session, BatchSizes(0, 0, rows.toLong), partitions)

  /** The numbers 0, 1, 2, ... of the [[Arrivals]] with the name of the gate, made by `partitions` map tasks. */
  def arriving(session: SparkSession, partitions: Int): DataFrame =
    session.readStream
      .format(classOf[ArrivingSource].getName)
      .option("arrivals", gate)
      .option("partitions", partitions.toLong)
      .load()

  /** The numbers 0, 1, 2, ..., made by `partitions` map tasks. */
  def numbers(session: SparkSession, sizes: BatchSizes, partitions: Int): DataFrame =
    session.readStream
      .format(classOf[GatedSource].getName)
      .option("gate", gate)
      .option("firstBatches", sizes.firstBatches)
      .option("firstRows", sizes.firstRows)
      .option("rows", sizes.rows)
      .option("partitions", partitions.toLong)
      .load()

  /**
   * Starts a query whose sink ignores the rows.
   *
   * @param batch
   *   number of its first batch
   */
  def start(frame: DataFrame, mode: OutputMode, batch: Long = 0L): Contender = contender(query(frame, mode), batch)

  /** Starts a query that is not controlled by a contender. Its sink ignores the rows. */
  def query(frame: DataFrame, mode: OutputMode): StreamingQuery = frame.writeStream
    .format("noop")
    .outputMode(mode)
    .options(side.options)
    .option("checkpointLocation", checkpoint.toString)
    .start()

  /** Starts a query with an operator over the numbers, `rows` in each batch with `keys` keys, from `mapTasks` tasks. */
  def start(spark: SparkSession, operator: Operator, rows: Int, keys: Int, mapTasks: Int): Contender =
    start(operator.over(numbers(session(spark), rows, mapTasks), rows, keys), operator.mode)

  /** The contender for a query that was started with this setup's settings, gate and checkpoint. */
  def contender(query: StreamingQuery, batch: Long = 0L): Contender =
    new Contender(
      side,
      label + ("manager" -> manager.name) + ("side" -> side.name),
      query,
      gate,
      checkpoint,
      every,
      batch
    )

  /** The options of the side as a Java map, for PySpark. */
  def optionsForPython: java.util.Map[String, String] = side.options.asJava
}

object SideSetup {

  /** Idle queries poll rarely, no batch without data runs between turns, and the progress of all batches is kept. */
  private val common = Map(
    "spark.sql.streaming.pollingDelay" -> "100ms",
    "spark.sql.streaming.noDataMicroBatches.enabled" -> "false",
    "spark.sql.streaming.numRecentProgressUpdates" -> "10000",
    "spark.sql.session.timeZone" -> "UTC"
  )
}
