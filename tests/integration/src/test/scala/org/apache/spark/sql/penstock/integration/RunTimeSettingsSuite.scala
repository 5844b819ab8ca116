package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQuery

import io.penstock.Penstock
import io.penstock.errors.PenstockException
import org.scalatest.funsuite.AnyFunSuite

/** Options that are set while a query runs. */
class RunTimeSettingsSuite extends AnyFunSuite with PenstockApplication {

  override protected def applicationConf: Map[String, String] =
    Applications.FastFiles + ("spark.penstock.shards" -> "16")

  test("the next batch has the number of tasks that was set, and the answer is the same") {
    val session = application.newSession()
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val checkpoint = newDirectory("checkpoint")
    def start(): StreamingQuery = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", checkpoint.toString)
      .option("penstock.tasks", "2")
      .queryName("counts")
      .format("memory")
      .start()
    val query = start()
    val wanted = Seq(2, 16, 16, 3, 2, 64)
    wanted.foreach { tasks =>
      if (tasks != 2 || query.lastProgress != null) Penstock.setOption(query, "tasks", tasks.toString)
      source.addData(1L to 100L)
      query.processAllAvailable()
    }
    val tasks = ReportedRegion.of(query.recentProgress.toSeq).flatten.filter(_.routed).map(_.tasks)
    assert(tasks == wanted.map(math.min(_, 16)))
    assert(session.table("counts").collect().map(_.getLong(1)).toSeq == Seq.fill(100)(wanted.size.toLong))

    val refused = intercept[PenstockException](Penstock.setOption(query, "penstock.policy", "static"))
    assert(refused.errorClass == "PENSTOCK_NOT_AT_RUN_TIME")
    query.stop()
    assert(intercept[PenstockException](Penstock.setOption(query, "tasks", "4")).errorClass == "PENSTOCK_NOT_RUNNING")

    val again = start()
    try {
      source.addData(1L to 100L)
      again.processAllAvailable()
      source.addData(1L to 100L)
      again.processAllAvailable()
      // The first batch of a run may have been tried before, with the tasks that it had then; the next has its own.
      assert(ReportedRegion.of(again.recentProgress.toSeq).flatten.last.tasks == 2)
      assert(session.table("counts").collect().forall(_.getLong(1) == wanted.size + 2L))
    } finally again.stop()
  }
}
