package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases._
import org.apache.spark.sql.penstock.integration.harness._

/** Keys are pinned and unpinned at random between batches, including rerun batches. The answers equal plain Spark's. */
class PinnedKeysSuite extends OperatorMatrixSuite {
  private val cases = Seq(
    AggregationCases.appendMode,
    DeduplicationCases.unbounded,
    SessionWindowCases.appendMode,
    StreamJoinCases.fullOuterNewestFormat,
    TransformWithStateCases.eventTimers,
    TransformWithStateCases.timeToLive
  )

  Brief.someOf(cases).foreach { operatorCase =>
    test(operatorCase.name) {
      val pinned = ReportedRegion.of(assertSameAnswers(operatorCase, Script.withReplays).progress).map(_.map(_.pinned))
      assert(pinned.flatten.exists(_ > 0), s"pinned keys by batch and region: $pinned")
    }
  }
}
