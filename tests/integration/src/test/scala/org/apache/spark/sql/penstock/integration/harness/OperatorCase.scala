package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{col, timestamp_seconds}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.{DataFrame, Dataset, classic}

/** The input of a query definition. `run` counts the starts of the query on its checkpoint, from 0. */
final class QueryInput(
    val session: classic.SparkSession,
    leftSource: MemoryStream[Event],
    rightSource: MemoryStream[Event],
    val run: Int
) {

  /** First input, with its event time as the timestamp `ts`. */
  def left: DataFrame = withTimestamp(leftSource)

  def right: DataFrame = withTimestamp(rightSource)

  def leftWatermarked: DataFrame = left.withWatermark("ts", QueryInput.Delay)

  def rightWatermarked: DataFrame = right.withWatermark("ts", QueryInput.Delay)

  def leftEvents: Dataset[Event] = leftSource.toDS()

  private def withTimestamp(source: MemoryStream[Event]) =
    source.toDF().withColumn("ts", timestamp_seconds(col("time")))
}

object QueryInput {
  val Delay = "3 seconds"
}

/** When the answers of two runs of a query are equal. */
sealed trait Equivalence

object Equivalence {

  /** The same rows in every batch, in any order. */
  case object SameRows extends Equivalence

  /** The same rows in the same order in every batch. */
  case object SameOrder extends Equivalence

  /** The same number of rows in every batch, for queries whose rows Spark may choose. */
  case object SameCounts extends Equivalence
}

/**
 * One query of the operator matrix.
 *
 * @param stock
 *   Spark's provider to compare with; some operators run only on RocksDB
 * @param shards
 *   Number of shards of the Penstock run
 * @param twoInputs
 *   Whether the second source is fed
 * @param unrouted
 *   Text in the reason why Penstock does not route some region; None if it routes all regions
 * @param evidence
 *   Texts that must occur in the rows of the answer; otherwise the input did not cover the purpose of the case
 * @param check
 *   Asserts that the last plan of a run is the expected one
 */
final case class OperatorCase(
    name: String,
    mode: OutputMode,
    stock: String = Engine.HdfsBacked,
    conf: Map[String, String] = Map.empty,
    shards: Int = OperatorCase.Shards,
    twoInputs: Boolean = false,
    equivalence: Equivalence = Equivalence.SameRows,
    unrouted: Option[String] = None,
    evidence: Seq[String] = Nil,
    check: SparkPlan => Unit = _ => ()
)(val query: QueryInput => DataFrame)

object OperatorCase {
  val Shards = 32
}
