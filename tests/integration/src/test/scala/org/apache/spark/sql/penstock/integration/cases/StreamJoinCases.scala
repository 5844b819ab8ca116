package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness.{Engine, OperatorCase, QueryInput}
import org.apache.spark.sql.streaming.OutputMode.Append

/** Stream-stream joins of every type, in every state format that Spark allows for a new query. */
object StreamJoinCases {
  private val FormatKey = "spark.sql.streaming.join.stateFormatVersion"

  /** Spark still requires this setting for format 4. */
  private val Format4Key = "spark.sql.streaming.join.stateFormatV4.enabled"
  private val types = Seq("inner", "left_outer", "right_outer", "full_outer", "left_semi")
  private val formats = Seq(2, 3, 4)

  /** Join of both inputs by key within a range of event time, so that the watermark evicts. */
  def ranged(in: QueryInput, joinType: String): DataFrame = {
    val left =
      in.leftWatermarked.select(col("key").as("leftKey"), col("value").as("leftValue"), col("ts").as("leftTime"))
    val right = in.rightWatermarked.select(col("key").as("rightKey"), col("value"), col("ts").as("rightTime"))
    val near = "rightTime >= leftTime - interval 3 seconds and rightTime <= leftTime + interval 4 seconds"
    left.join(right, expr(s"leftKey = rightKey and $near"), joinType)
  }

  private def unbounded(in: QueryInput): DataFrame =
    in.left.select("key", "value").join(in.right.select(col("key"), col("value").as("other")), "key")

  private def inFormat(name: String, version: Int)(query: QueryInput => DataFrame) = OperatorCase(
    s"$name, state format $version",
    Append(),
    stock = Engine.RocksDb,
    conf = Map(FormatKey -> version.toString) ++ Option.when(version == 4)(Format4Key -> "true"),
    twoInputs = true,
    check = usesFormat(version)
  )(query)

  /** Spark silently falls back to format 2 if the provider does not support a later one. */
  private def usesFormat(version: Int)(plan: SparkPlan): Unit = {
    val versions = plan.collect { case join: StreamingSymmetricHashJoinExec => join.stateFormatVersion }
    assert(versions == Seq(version), s"state formats of the joins of\n$plan")
  }

  private def inDefaultFormat(joinType: String) =
    OperatorCase(s"join, $joinType, default state format", Append(), stock = Engine.RocksDb, twoInputs = true)(
      ranged(_, joinType)
    )

  val inner: OperatorCase = inDefaultFormat("inner")

  val fullOuter: OperatorCase = inDefaultFormat("full_outer")

  val fullOuterNewestFormat: OperatorCase = rangedInFormat("full_outer", formats.max)

  private def rangedInFormat(joinType: String, version: Int) =
    inFormat(s"join, $joinType", version)(ranged(_, joinType))

  /** If the watermark moves without new rows, results wait for the next batch with rows. */
  private val withoutEmptyBatches: Seq[OperatorCase] = Seq("left_outer", "full_outer", "left_semi").map { joinType =>
    OperatorCase(
      s"join, $joinType, without batches of no data",
      Append(),
      stock = Engine.RocksDb,
      conf = Map("spark.sql.streaming.noDataMicroBatches.enabled" -> "false"),
      twoInputs = true
    )(ranged(_, joinType))
  }

  /** The watermark is that of the input that is ahead. Rows of either side that are late by it are lost. */
  private val aheadOfOneInput: OperatorCase = OperatorCase(
    "join, full_outer, watermark of the input that is ahead",
    Append(),
    stock = Engine.RocksDb,
    conf = Map("spark.sql.streaming.multipleWatermarkPolicy" -> "max"),
    twoInputs = true
  )(ranged(_, "full_outer"))

  /** Null keys of both sides match each other. */
  private val nullSafe: OperatorCase = OperatorCase(
    "join by keys that may be null",
    Append(),
    stock = Engine.RocksDb,
    twoInputs = true,
    evidence = Seq("NULL")
  ) { in =>
    def keyed(frame: DataFrame, key: String, value: String, time: String) =
      frame.select(when(col("key") > 2, col("key")).as(key), col("value").as(value), col("ts").as(time))
    val near = "rightTime >= leftTime - interval 3 seconds and rightTime <= leftTime + interval 4 seconds"
    keyed(in.leftWatermarked, "leftKey", "leftValue", "leftTime")
      .join(keyed(in.rightWatermarked, "rightKey", "value", "rightTime"), expr(s"leftKey <=> rightKey and $near"))
  }

  private val lessUsual: Seq[OperatorCase] = withoutEmptyBatches :+ aheadOfOneInput :+ nullSafe

  private val inDefaultFormats: Seq[OperatorCase] =
    Seq(inner, fullOuter) ++ Seq("left_outer", "right_outer", "left_semi").map(inDefaultFormat) ++ lessUsual

  private def inFormats(versions: Seq[Int]): Seq[OperatorCase] =
    versions.map(version => inFormat("join without watermark", version)(unbounded)) ++
      types.flatMap(joinType => versions.map(rangedInFormat(joinType, _)))

  val inDefaultAndNewestFormat: Seq[OperatorCase] = inDefaultFormats ++ inFormats(Seq(formats.max))

  val all: Seq[OperatorCase] = inDefaultFormats ++ inFormats(formats)
}
