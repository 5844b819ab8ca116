package org.apache.spark.sql.penstock.integration

import java.nio.file.Path

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{col, concat, count, lit, max}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.penstock.report.ReportRows
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Column, Encoders, Row}

import io.penstock.errors.PenstockException
import io.penstock.{Penstock, SameOnEverySpark}
import org.scalatest.funsuite.AnyFunSuite

/** Options that are set while a query runs. */
@SameOnEverySpark
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
      // The set option has ended with its run, from the first batch on, because no earlier run has tried that batch.
      assert(ReportedRegion.of(again.recentProgress.toSeq).flatten.map(_.tasks) == Seq(2, 2))
      assert(session.table("counts").collect().forall(_.getLong(1) == wanted.size + 2L))
    } finally again.stop()
  }

  test("an option set for a query of one session is kept when one is set for a query of another session") {
    final class Running(tasks: Int) {
      private val session = application.newSession()
      private val source = MemoryStream[Long](Encoders.scalaLong, session)
      val query: StreamingQuery = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
        .outputMode("complete")
        .option("checkpointLocation", newDirectory("checkpoint").toString)
        .option("penstock.tasks", "2")
        .format("noop")
        .start()
      Penstock.setOption(query, "tasks", tasks.toString)

      /** Number of tasks of the next batch. */
      def next(): Int = {
        source.addData(1L to 100L)
        query.processAllAvailable()
        ReportedRegion.of(query.recentProgress.toSeq).flatten.last.tasks
      }
    }
    val one = new Running(3)
    val other = new Running(5)
    try {
      assert((one.next(), other.next()) == ((3, 5)))
      other.query.stop()
      val third = new Running(7)
      try assert((one.next(), third.next()) == ((3, 7)))
      finally third.query.stop()
      assert(one.next() == 3)
    } finally Seq(one, other).foreach(_.query.stop())
  }

  /** Runs a query that counts by value from its checkpoint, while `body` runs. */
  private def counting(source: MemoryStream[Long], checkpoint: Path, name: String, options: (String, String)*)(
      body: StreamingQuery => Unit
  ): Unit = {
    val query = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", checkpoint.toString)
      .options(options.toMap)
      .queryName(name)
      .format("memory")
      .start()
    try body(query)
    finally query.stop()
  }

  test("a run that allows fewer pinned keys has fewer from its first batch on") {
    val session = application.newSession()
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val checkpoint = newDirectory("checkpoint")
    def running(options: (String, String)*) = counting(source, checkpoint, "pinned", options: _*) _
    def pinnedInTheNextBatch(query: StreamingQuery): Int = {
      source.addData(1L to 100L)
      query.processAllAvailable()
      ReportedRegion.of(query.recentProgress.toSeq).flatten.last.pinned
    }
    running() { query =>
      pinnedInTheNextBatch(query)
      Seq(1L, 2L, 3L).foreach(Penstock.pin(query, _))
      assert(pinnedInTheNextBatch(query) == 3)
    }
    running("penstock.pinned.max" -> "2")(query => assert(pinnedInTheNextBatch(query) == 2))
    assert(session.table("pinned").collect().map(_.getLong(1)).toSeq == Seq.fill(100)(3L))
  }

  private def errorOf(body: => Unit): PenstockException = intercept[PenstockException](body)

  test("a key of several columns is pinned and returns to its base shard") {
    val session = application.newSession()
    val source = MemoryStream[(String, Long)](
      Encoders.tuple(Encoders.STRING, Encoders.scalaLong),
      session
    )
    val query = source.toDF().groupBy("_1", "_2").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .option("penstock.pinned.max", "1")
      .queryName("pairs")
      .format("memory")
      .start()
    def pinnedInTheNextBatch(): Int = {
      source.addData(Seq("a" -> 1L, "a" -> 2L, "b" -> 1L))
      query.processAllAvailable()
      ReportedRegion.of(query.recentProgress.toSeq).flatten.last.pinned
    }
    try {
      assert(errorOf(Penstock.pin(query, "a", 1L)).errorClass == "PENSTOCK_NOT_RUNNING")
      assert(pinnedInTheNextBatch() == 0)
      Penstock.pin(query, "a", 1)
      assert(pinnedInTheNextBatch() == 1)
      assert(errorOf(Penstock.pin(query, "a", 2)).getMessage.contains("penstock.pinned.max=1"))
      val other = errorOf(Penstock.pin(query, "a"))
      assert(other.errorClass == "PENSTOCK_NO_SUCH_KEY" && other.detail.contains("region 0: STRING, BIGINT"))
      assert(errorOf(Penstock.pin(query, "a", "b")).errorClass == "PENSTOCK_NO_SUCH_KEY")
      assert(pinnedInTheNextBatch() == 1)
      Penstock.unpin(query, "a", 1L)
      assert(pinnedInTheNextBatch() == 0)
      assert(session.table("pairs").collect().map(_.getLong(2)).toSeq == Seq(4L, 4L, 4L))
    } finally query.stop()
    assert(errorOf(Penstock.unpin(query, "a", 1)).errorClass == "PENSTOCK_NOT_RUNNING")
  }

  test("an option may be named as in every other place") {
    val session = application.newSession()
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val query = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .option("spark.penstock.tasks", "2")
      .format("noop")
      .start()
    def tasksOfTheNextBatch(): Int = {
      source.addData(1L to 100L)
      query.processAllAvailable()
      ReportedRegion.of(query.recentProgress.toSeq).flatten.last.tasks
    }
    try {
      assert(tasksOfTheNextBatch() == 2)
      Seq("spark.penstock.tasks" -> 3, "penstock.tasks" -> 4, "tasks" -> 5, "spark.penstock.tasks" -> 6).foreach {
        case (name, tasks) =>
          Penstock.setOption(query, name, tasks.toString)
          assert(tasksOfTheNextBatch() == tasks, name)
      }
      assert(errorOf(Penstock.setOption(query, "spark.penstock.task", "2")).detail.contains("spark.penstock.tasks?"))
    } finally query.stop()
  }

  /** Runs a query with the given key, and one batch of it. */
  private def withKeys(key: Column)(body: (StreamingQuery, () => Row) => Unit): Unit = {
    val session = application.newSession()
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val query = source.toDF().groupBy(key.as("k")).agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .format("noop")
      .start()
    def batch(): Row = {
      source.addData(1L to 100L)
      query.processAllAvailable()
      ReportedRegion.withState(query.recentProgress.toSeq).last.observedMetrics.get("penstock")
        .getAs[scala.collection.Seq[Row]]("regions").head
    }
    try {
      batch()
      body(query, () => batch())
    } finally query.stop()
  }

  test("a key of the wrong type is rejected, and the error names both types") {
    withKeys(col("value")) { (query, _) =>
      Seq[Any]("5", 5.0, true).foreach { key =>
        val refused = errorOf(Penstock.pin(query, key))
        assert(refused.errorClass == "PENSTOCK_NO_SUCH_KEY" && refused.detail.contains("region 0: BIGINT"), key)
      }
      assert(errorOf(Penstock.pin(query, "5")).detail.contains("STRING was given"))
      assert(errorOf(Penstock.pin(query)).errorClass == "PENSTOCK_NO_SUCH_KEY")
      Seq[Any](5, 5L, 5.toShort).foreach(Penstock.pin(query, _))
    }
    withKeys(concat(lit("k"), col("value"))) { (query, _) =>
      assert(errorOf(Penstock.pin(query, 5)).detail.contains("INT was given"))
      Penstock.pin(query, "k5")
    }
    withKeys(col("value").cast("short")) { (query, _) =>
      Penstock.pin(query, 5)
      assert(errorOf(Penstock.pin(query, 70000)).errorClass == "PENSTOCK_NO_SUCH_KEY")
    }
  }

  test("pinned keys are reported by name, and marked if they were never seen") {
    withKeys(concat(lit("k"), col("value"))) { (query, batch) =>
      Penstock.pin(query, "k5")
      Penstock.pin(query, "kay5")
      def pinned = batch().getAs[scala.collection.Seq[Row]]("pinnedKeys").map(row =>
        (row.getAs[String]("key"), row.getAs[Long]("rows"), row.getAs[Boolean]("seen"))
      ).sortBy(_._1)
      assert(pinned == Seq(("k5", 1L, true), ("kay5", 0L, false)))
      Penstock.setOption(query, "report.keys", "false")
      assert(pinned.forall(_._1.startsWith("hash ")))
      Penstock.setOption(query, "report.keys", "true")
      Penstock.unpin(query, "kay5")
      assert(pinned == Seq(("k5", 1L, true)))
    }
  }

  test("a user's metric with the name of the report is kept next to the report") {
    val session = application.newSession()
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val query =
      source.toDF().observe("penstock", count(lit(1)).as("mine")).observe("penstock#7", max("value").as("most"))
        .groupBy("value").agg(count(lit(1)).as("n")).writeStream
        .outputMode("complete")
        .option("checkpointLocation", newDirectory("checkpoint").toString)
        .queryName("observed")
        .format("memory")
        .start()
    try {
      source.addData(1L to 100L)
      query.processAllAvailable()
      val progress = ReportedRegion.withState(query.recentProgress.toSeq).last
      val metrics = progress.observedMetrics
      assert(
        metrics.get("penstock").getAs[Long]("mine") == 100L && metrics.get("penstock#7").getAs[Long]("most") == 100L
      )
      val report = ReportRows.of(progress).getOrElse(fail(s"no report in $metrics"))
      assert(ReportRows.regions(report).head.getAs[Long]("rows") == 100L)
      assert(metrics.get("penstock#8") == report)
      assert(session.table("observed").count() == 100L)
    } finally query.stop()
  }

  Seq("observe", "off").foreach { mode =>
    test(s"a query with pinned keys continues in mode $mode, with keys in their base shards") {
      val session = application.newSession()
      val source = MemoryStream[Long](Encoders.scalaLong, session)
      val checkpoint = newDirectory("checkpoint")
      def running(options: (String, String)*) = counting(source, checkpoint, "counts", options: _*) _
      def batch(query: StreamingQuery): Unit = {
        source.addData(1L to 100L)
        query.processAllAvailable()
      }
      def counts: Seq[Long] = session.table("counts").collect().map(_.getLong(1)).toSeq
      running() { query =>
        batch(query)
        Seq(1L, 2L).foreach(Penstock.pin(query, _))
        batch(query)
        assert(ReportedRegion.of(query.recentProgress.toSeq).flatten.last.pinned == 2)
      }
      assert(PinnedKeys.count(checkpoint) == 2)
      running("penstock.mode" -> mode) { query =>
        batch(query)
        batch(query)
        assert(counts == Seq.fill(100)(4L))
      }
      assert(PinnedKeys.count(checkpoint) == 0)
      running() { query =>
        batch(query)
        batch(query)
        assert(counts == Seq.fill(100)(6L))
      }
    }
  }

  test("no key can be pinned if nothing is routed") {
    val source = MemoryStream[Long](Encoders.scalaLong, application)
    val query = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .option("penstock.mode", "observe")
      .format("noop")
      .start()
    try {
      source.addData(1L)
      query.processAllAvailable()
      val refused = errorOf(Penstock.pin(query, 1L))
      assert(refused.errorClass == "PENSTOCK_CANNOT_PIN" && refused.detail.contains("mode observe"))
    } finally query.stop()
  }
}
