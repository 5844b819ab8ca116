package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.DataFrame

import org.scalatest.funsuite.AnyFunSuite

/**
 * Runs queries with plain Spark and with Penstock on the same seeded input and compares the rows of every batch.
 *
 * `-Dpenstock.test.subject=stock` puts another configuration of plain Spark in Penstock's place: every case must pass
 * there too, or it is the case that is not deterministic.
 */
abstract class OperatorMatrixSuite extends AnyFunSuite with PenstockApplication {
  import OperatorMatrixSuite._

  /** Registers one test per case. */
  protected def compareWithSpark(cases: Seq[OperatorCase]): Unit =
    cases.foreach(test => this.test(test.name)(assertSameAnswers(test)))

  /** Runs a case with both engines, `script` and `disturb` as the fault to survive asks for. */
  protected def assertSameAnswers(
      test: OperatorCase,
      script: (Long, Boolean) => Seq[Step] = Script.standard,
      disturb: DataFrame => DataFrame = identity
  ): RunResult = {
    val seed = TestSeed.of(test.name)
    val steps = script(seed, test.twoInputs)
    withClue(s"${test.name}, ${TestSeed.clue}: ") {
      val expected = run(reference(test), test, steps.filterNot(_ == Step.Replay), identity)
      val found = run(subject(test, seed), test, steps, disturb)
      BatchComparison.difference(expected, found, test.equivalence).foreach(fail(_))
      found
    }
  }

  private def run(engine: Engine, test: OperatorCase, steps: Seq[Step], disturb: DataFrame => DataFrame): RunResult =
    new QueryRun(application, engine, test, newDirectory("checkpoint"), disturb).play(steps)
}

object OperatorMatrixSuite {
  private val subjectIsStock = sys.props.get("penstock.test.subject").contains("stock")

  private def reference(test: OperatorCase): Engine = Engine.stock(test.stock, 3)

  private def subject(test: OperatorCase, seed: Long): Engine =
    if (subjectIsStock) Engine.stock(Engine.RocksDb, 5) else Engine.penstock(test.shards, seed)
}
