package org.apache.spark.sql.penstock.integration

import org.apache.spark.SparkContext
import org.apache.spark.sql.penstock.integration.cases._
import org.apache.spark.sql.penstock.integration.harness._

/**
 * Executors in processes of their own. The binding is random, so in every batch executors are given shards that they do
 * not hold; and executors are killed, so that some of them hold nothing at all. Checkpoint files are written by Spark's
 * default file manager.
 */
class LocalClusterSuite extends OperatorMatrixSuite with LocalCluster {

  compareWithSpark(
    Seq(
      AggregationCases.appendMode,
      DeduplicationCases.thenAggregationByLess,
      SessionWindowCases.appendMode,
      StreamJoinCases.fullOuter,
      StreamJoinCases.fullOuterNewestFormat,
      GroupsWithStateCases.eventTime,
      TransformWithStateCases.eventTimers,
      CompositionCases.aggregationsThenJoin
    )
  )

  test("aggregation: a task that fails and is retried, perhaps elsewhere") {
    assertSameAnswers(AggregationCases.appendMode, disturb = Faults.failTasksOnce)
  }

  test("aggregation: executors that are killed between batches") {
    assertSameAnswers(AggregationCases.appendMode, withExecutorsKilled)
  }

  test("transformWithState: executors that are killed between batches") {
    assertSameAnswers(TransformWithStateCases.eventTimers, withExecutorsKilled)
  }

  private def withExecutorsKilled(seed: Long, twoInputs: Boolean): Seq[Step] = {
    val steps = Script.standard(seed, twoInputs)
    val kill = Step.Disturb(() => replaceOneExecutor(application.sparkContext))
    steps.take(2) ++ Seq(kill) ++ steps.slice(2, 5) ++ Seq(kill) ++ steps.drop(5)
  }

  private def replaceOneExecutor(context: SparkContext): Unit = {
    val before = context.getExecutorIds()
    assert(before.nonEmpty)
    context.killAndReplaceExecutor(before.head)
    awaitExecutors(context, atLeast = 2, without = before.head)
  }
}
