package io.penstock.benchmarks

import java.nio.file.{Files, Path}
import java.util.UUID

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery}
import org.apache.spark.sql.{DataFrame, SparkSession}

import io.penstock.benchmarks.source.{ArrivingSource, BatchSizes, GatedSource}
import io.penstock.benchmarks.work.Operator

/**
 * Everything that a side's query needs to start: its session's settings, its gate, its checkpoint.
 *
 * @param label
 *   what tells this case from the others of its comparison, besides the side and the file manager
 * @param every
 *   the side takes part in one round out of `every`
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

  /** A session that differs from `spark` by the side's settings only. */
  def session(spark: SparkSession): SparkSession = {
    val own = spark.newSession()
    settings.foreach { case (k, v) => own.conf.set(k, v) }
    own
  }

  /** The numbers 0, 1, 2, ...: `rows` in each batch, made by `partitions` map tasks. */
  def numbers(session: SparkSession, rows: Int, partitions: Int): DataFrame =
    numbers(session, BatchSizes(0, 0, rows.toLong), partitions)

  /** The numbers 0, 1, 2, ... of [[Arrivals]] by the name of the gate, made by `partitions` map tasks. */
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
   * Starts a query; its sink takes the rows and does nothing.
   *
   * @param batch
   *   that it starts with
   */
  def start(frame: DataFrame, mode: OutputMode, batch: Long = 0L): Contender = contender(query(frame, mode), batch)

  /** A query that nobody needs to tell when to go on; its sink takes the rows and does nothing. */
  def query(frame: DataFrame, mode: OutputMode): StreamingQuery = frame.writeStream
    .format("noop")
    .outputMode(mode)
    .options(side.options)
    .option("checkpointLocation", checkpoint.toString)
    .start()

  /** Starts an operator over the numbers: `rows` in each batch, with so many `keys`, made by `mapTasks` tasks. */
  def start(spark: SparkSession, operator: Operator, rows: Int, keys: Int, mapTasks: Int): Contender =
    start(operator.over(numbers(session(spark), rows, mapTasks), rows, keys), operator.mode)

  /** The contender of a query that was started elsewhere with this setup's settings, gate and checkpoint. */
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

  /** For PySpark. */
  def optionsForPython: java.util.Map[String, String] = side.options.asJava
}

object SideSetup {

  /** Idle queries poll rarely, a batch without data never runs between two turns, and all batches are told. */
  private val common = Map(
    "spark.sql.streaming.pollingDelay" -> "100ms",
    "spark.sql.streaming.noDataMicroBatches.enabled" -> "false",
    "spark.sql.streaming.numRecentProgressUpdates" -> "10000",
    "spark.sql.session.timeZone" -> "UTC"
  )
}
