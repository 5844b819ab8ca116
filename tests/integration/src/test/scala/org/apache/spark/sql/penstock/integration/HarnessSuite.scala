package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.cases.AggregationCases
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.{DataFrame, Dataset, Row}

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/** Tests the harness: it accepts equal answers and detects every kind of difference. */
@SameOnEverySpark
class HarnessSuite extends AnyFunSuite with PenstockApplication {
  private val reference = Engine.stock(Engine.HdfsBacked, 3)
  private val control = Engine.stock(Engine.RocksDb, 2)
  private val test0 = AggregationCases.appendMode
  private val script = Script.standard(seed = 7, twoInputs = false)

  private def play(engine: Engine, steps: Seq[Step], disturb: DataFrame => DataFrame = identity): RunResult =
    new QueryRun(application, engine, test0, newDirectory("checkpoint"), disturb).play(steps)

  private lazy val expected = play(reference, script)

  private def differs(found: RunResult): String =
    BatchComparison.difference(expected, found, Equivalence.SameRows).getOrElse(fail("no difference detected"))

  test("different providers and numbers of partitions give the same rows in several batches") {
    val found = play(control, script)
    assert(BatchComparison.difference(expected, found, Equivalence.SameRows).isEmpty)
    assert(expected.batches.count(_._2.exists(_.nonEmpty)) >= 4)
  }

  test("the watermark evicts state, and some rows are late") {
    val operators = expected.progress.flatMap(_.stateOperators)
    assert(operators.map(_.numRowsRemoved).sum > 0)
    assert(operators.map(_.numRowsDroppedByWatermark).sum > 0)
    assert(expected.progress.exists(_.numInputRows == 0))
    assert(expected.progress.map(_.runId).distinct.size == 2)
  }

  test("a batch that runs again is delivered again with the same rows") {
    val found = play(control, Script.withReplays(seed = 7, twoInputs = false))
    assert(BatchComparison.difference(expected, found, Equivalence.SameRows).isEmpty)
    assert(found.batches.values.exists(deliveries => deliveries.size == 2 && deliveries.head.nonEmpty))
  }

  test("a missing row is detected") {
    assert(differs(play(control, script, _.filter("key <> 3"))).contains("missing"))
  }

  test("a duplicate row is detected") {
    assert(differs(play(
      control,
      script,
      rows =>
        rows.withColumn("copy", explode(sequence(lit(1), lit(2))))
          .filter("copy = 1 or key = 3").drop("copy")
    )).contains("too many"))
  }

  test("a changed value is detected") {
    assert(differs(play(control, script, _.withColumn("n", when(col("key") === 3, col("n") + 1).otherwise(col("n")))))
      .contains("missing"))
  }

  test("state lost at a restart is detected") {
    val found = new QueryRun(application, control, AggregationCases.updateMode, newDirectory("checkpoint"))
    val split = script.indexOf(Step.Restart)
    val before = found.play(script.take(split))
    val after = new QueryRun(application, control, AggregationCases.updateMode, newDirectory("checkpoint"))
      .play(script.drop(split + 1))
    val uninterrupted =
      new QueryRun(application, reference, AggregationCases.updateMode, newDirectory("checkpoint")).play(script)
    val joined =
      RunResult(before.batches ++ after.batches.map { case (id, rows) => (id + before.batches.size, rows) }, Nil)
    assert(BatchComparison.difference(uninterrupted, joined, Equivalence.SameRows).isDefined)
  }

  test("rows in another order are detected where order matters") {
    val rows = RunResult(Map(0L -> Seq(Seq("[1]", "[2]"))), Nil)
    val turned = RunResult(Map(0L -> Seq(Seq("[2]", "[1]"))), Nil)
    assert(BatchComparison.difference(rows, turned, Equivalence.SameOrder).isDefined)
    assert(BatchComparison.difference(rows, turned, Equivalence.SameRows).isEmpty)
    assert(BatchComparison.difference(rows, RunResult(Map.empty, Nil), Equivalence.SameCounts).isDefined)
  }

  test("a reference without rows is rejected") {
    val nothing = RunResult(Map(0L -> Seq(Nil)), Nil)
    assert(BatchComparison.difference(nothing, nothing, Equivalence.SameRows).isDefined)
  }

  test("a run by another engine than the expected one is detected") {
    val claimed = control.copy(provider = Engine.HdfsBacked)
    val error = intercept[IllegalArgumentException](play(claimed, script.take(1)))
    assert(error.getMessage.contains("instead of"))
  }

  test("an error in the query reaches the test without waiting") {
    val broken = udf((key: Long) => if (key >= 0) throw new IllegalStateException("on purpose") else key)
    val error = intercept[Exception](play(control, script, (rows: Dataset[Row]) => rows.filter(broken(col("key")) > 0)))
    assert(
      Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).exists(_.getMessage.contains("on purpose"))
    )
  }

  test("rendering distinguishes values that must not be confused") {
    val values = Seq[Any](null, "NULL", "", -0.0, 0.0, Double.NaN, Seq(1, 2), Seq(2, 1), Row(1, 2))
    assert(values.map(value => Rendering.of(Row(value))).distinct.size == values.size)
  }
}
