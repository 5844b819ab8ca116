package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.penstock.integration.cases._
import org.apache.spark.sql.penstock.integration.harness._

/**
 * Rerun batches, failed and retried tasks, and stages that run again after a lost map output: the answers equal plain
 * Spark's. Every case of the operator matrix already includes a restart.
 */
class FaultSuite extends OperatorMatrixSuite {

  /**
   * One case per kind of state: point access, eviction scans, prefix and range scans, lists, timers, several stores.
   */
  private val cases = Brief.someOf(Seq(
    AggregationCases.updateMode,
    AggregationCases.appendMode,
    DeduplicationCases.withinWatermark,
    DeduplicationCases.thenAggregationByLess,
    SessionWindowCases.appendMode,
    StreamJoinCases.fullOuter,
    StreamJoinCases.fullOuterNewestFormat,
    GroupsWithStateCases.eventTime,
    TransformWithStateCases.eventTimers,
    TransformWithStateCases.timeToLive,
    CompositionCases.aggregationsThenJoin,
    CompositionCases.chainedWindowsOtherKey,
    ExchangeCases.joinedBelow
  ))

  /**
   * These queries emit rows only in the batches that a moved watermark triggers, which have no input and no map output.
   */
  private val rowsWithoutInput =
    Set(AggregationCases.appendMode, SessionWindowCases.appendMode, CompositionCases.aggregationsThenJoin).map(_.name)

  cases.foreach { operatorCase =>
    test(s"${operatorCase.name}: batches that run again under another binding") {
      val found = assertSameAnswers(operatorCase, Script.withReplays)
      assert(found.batches.values.count(_.size > 1) == 2, "number of batches that were delivered twice")
    }

    test(s"${operatorCase.name}: tasks that fail and are retried") {
      val (_, ends) = Faults.countingTaskEnds(application.sparkContext) {
        assertSameAnswers(operatorCase, disturb = Faults.failTasksOnce)
      }
      assert(Faults.failures(ends) > 0)
    }

    if (!rowsWithoutInput(operatorCase.name))
      test(s"${operatorCase.name}: a stage that runs again after a lost map output") {
        val (_, ends) = Faults.countingTaskEnds(application.sparkContext) {
          assertSameAnswers(operatorCase, disturb = Faults.loseMapOutputOnce)
        }
        assert(Faults.fetchFailures(ends) > 0)
      }
  }

  test("batches that run again may also have failing tasks") {
    assertSameAnswers(AggregationCases.appendMode, Script.withReplays, Faults.failTasksOnce)
  }

  test("work of a failed attempt is not reported") {
    def work(disturb: DataFrame => DataFrame) = {
      val progress = assertSameAnswers(AggregationCases.updateMode, disturb = disturb).progress
      // Batches without rows only have scans, one for each task.
      ReportedRegion.of(progress).flatten.map(_.work).filter(_._1.exists(_ > 0))
    }
    val calm = work(identity)
    val (failing, ends) = Faults.countingTaskEnds(application.sparkContext)(work(Faults.failTasksOnce))
    assert(Faults.failures(ends) > 0 && calm.flatMap(_._2).sum > 0)
    assert(failing == calm)
  }

  test("several batches in a row may run without a commit") {
    assertSameAnswers(GroupsWithStateCases.eventTime, Script.withReplaysInARow)
  }
}
