package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.DataFrame

import org.scalatest.funsuite.AnyFunSuite

/**
 * Runs queries with plain Spark and with Penstock on the same seeded input and compares the rows of every batch.
 */
abstract class OperatorMatrixSuite extends AnyFunSuite with PenstockApplication {
  import OperatorMatrixSuite._

  /** Registers one test per case. */
  protected def compareWithSpark(cases: Seq[OperatorCase]): Unit =
    cases.foreach(test => this.test(test.name)(assertSameAnswers(test)))

  /**
   * Runs a case with both engines. `script`, `disturb` and `sinkActions` can inject faults that the query must survive.
   */
  protected def assertSameAnswers(
      test: OperatorCase,
      script: (Long, Boolean) => Seq[Step] = Script.standard,
      disturb: DataFrame => DataFrame = OperatorMatrixSuite.undisturbed,
      sinkActions: Int = 1
  ): RunResult = {
    val seed = TestSeed.of(test.name)
    val engines = EnginePair.of(test.stock, test.shards, seed)
    val steps = script(seed, test.twoInputs)
    withClue(s"${test.name}, ${TestSeed.clue}: ") {
      val calm = steps.filterNot(isFault)
      def reference =
        ReferenceAnswers.of(engines.reference, test, calm)(run(engines.reference, test, calm, undisturbed))
      def subject = run(engines.subject, test, steps, disturb, sinkActions)
      val (expected, found) =
        if (steps == calm && disturb == undisturbed) SideBySide(reference, subject) else (reference, subject)
      BatchComparison.difference(expected, found, test.equivalence).foreach(fail(_))
      val rows = expected.batches.values.flatten.flatten
      test.evidence.foreach(text =>
        assert(rows.exists(_.contains(text)), s"no row shows $text, so the case does not cover its purpose")
      )
      if (engines.subject.isPenstock) assert(ReportedRegion.contradictions(test, found.progress).isEmpty)
      found
    }
  }

  private def run(
      engine: Engine,
      test: OperatorCase,
      steps: Seq[Step],
      disturb: DataFrame => DataFrame,
      sinkActions: Int = 1
  ): RunResult =
    new QueryRun(application, engine, test, newDirectory("checkpoint"), disturb, sinkActions).play(steps)
}

object OperatorMatrixSuite {
  private val undisturbed: DataFrame => DataFrame = identity

  /** Steps that the reference leaves out. Restarts stay, because the answer depends on them if time matters. */
  private def isFault(step: Step): Boolean = step match {
    case Step.Replay | Step.Disturb(_) => true
    case _ => false
  }
}
