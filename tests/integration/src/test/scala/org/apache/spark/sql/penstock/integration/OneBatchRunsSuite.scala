package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQueryProgress

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/** Queries that are started anew for each batch, with other cores and settings in each run. */
@SameOnEverySpark
class OneBatchRunsSuite extends AnyFunSuite with OneApplicationAtATime {

  private def newQuery() = new CountingQuery(newDirectory("source"), newDirectory("checkpoint"))

  /** Number of tasks, with its reason, of each batch of a run with new input, whose answer must be right. */
  private def run(query: CountingQuery, cores: Int, options: (String, String)*): Seq[(Int, Option[String])] = {
    val session = application(Applications.Plugin + ("spark.penstock.shards" -> "16"), cores = cores)
    val (counts, progress) = query.runOn(session, options.toMap)
    assert(counts == query.expected)
    ReportedRegion.withState(progress).map(reported)
  }

  private def reported(batch: StreamingQueryProgress): (Int, Option[String]) = {
    val region = batch.observedMetrics.get("penstock").getAs[scala.collection.Seq[Row]]("regions").head
    (region.getAs[Int]("tasks"), Option(region.getAs[String]("tasksReason")))
  }

  test("each run has as many tasks as cores, or as its settings say") {
    val query = newQuery()
    assert(run(query, cores = 2) == Seq((2, None)))
    assert(run(query, cores = 5) == Seq((5, None)))
    assert(run(query, cores = 5, "penstock.tasks" -> "3") == Seq((3, None)))
    assert(run(query, cores = 1) == Seq((1, None)))
  }

  test("with auto and without a plan, each run has a task per core") {
    val query = newQuery()
    val auto = "penstock.tasks" -> "auto"
    assert(run(query, cores = 2, auto).map(_._1) == Seq(2))
    assert(run(query, cores = 5, auto).map(_._1) == Seq(5))
    // Three tasks are fewer than the cores, so this number stays until a plan changes it.
    assert(run(query, cores = 5, "penstock.tasks" -> "3").map(_._1) == Seq(3))
    assert(run(query, cores = 6, auto).map(_._1) == Seq(3))
    assert(run(query, cores = 2, auto).map(_._1) == Seq(2))
    assert(run(query, cores = 4, auto).map(_._1) == Seq(4))
  }

  test("a batch that an earlier run has tried keeps its number of tasks, and progress says why") {
    val query = newQuery()
    run(query, cores = 2)
    QueryRun.loseNewestCommit(query.checkpoint)
    val found = run(query, cores = 5)
    assert(found.map(_._1) == Seq(2, 5))
    assert(
      found.head._2.contains("an earlier run has tried this batch with this number of tasks; the next batch has 5")
    )
    assert(found.last._2.isEmpty)
  }

  test("a batch that was tried without a change of state also keeps its number of tasks") {
    val query = newQuery()
    run(query, cores = 2)
    val failing = application(Applications.Plugin + ("spark.penstock.shards" -> "16"), attempts = 1, cores = 2)
    intercept[Exception](query.runOn(failing, condition = "raise_error('on purpose') is null"))
    assert(run(query, cores = 4).map(_._1) == Seq(2, 4))
  }
}
