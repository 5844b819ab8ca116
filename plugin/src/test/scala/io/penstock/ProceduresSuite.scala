package io.penstock

import java.nio.file.Files

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Encoders, Row, SparkSession}

import io.penstock.errors.PenstockException
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** SQL procedures for clients that cannot call the driver: `CALL penstock.set(...)`. */
class ProceduresSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val spark = SparkSession.builder().master("local[2]").appName("procedures")
    .config("spark.ui.enabled", "false").config("spark.plugins", "io.penstock.PenstockPlugin")
    .config("spark.penstock.shards", "8").getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private def run(body: (StreamingQuery, () => Row) => Unit): Unit = {
    val source = MemoryStream[String](Encoders.STRING, spark)
    val query = source.toDF().groupBy("value").count().writeStream.outputMode("update").format("noop")
      .option("checkpointLocation", Files.createTempDirectory("penstock-procedures").toString).start()
    def batch(): Row = {
      source.addData("a", "b", "c")
      query.processAllAvailable()
      query.lastProgress.observedMetrics.get("penstock").getAs[scala.collection.Seq[Row]]("regions").head
    }
    try {
      batch()
      body(query, () => batch())
    } finally query.stop()
  }

  private def errorOf(text: String, arguments: Any*): PenstockException =
    Iterator.iterate[Throwable](intercept[Exception](spark.sql(text, arguments.toArray)))(_.getCause)
      .takeWhile(_ != null).collectFirst { case e: PenstockException => e }.getOrElse(fail("not an error of Penstock"))

  test("procedures set options and pin and unpin keys of a running query by its run id") {
    run { (query, batch) =>
      def call(text: String, arguments: Any*): Unit =
        assert(spark.sql(text, (query.runId.toString +: arguments).toArray).collect().isEmpty)
      call("CALL penstock.set(?, ?, ?)", "tasks", "1")
      assert(batch().getAs[Int]("tasks") == 1)
      call("CALL penstock.pin(?, ?)", "a")
      val pinned = batch()
      assert(pinned.getAs[Int]("pinned") == 1)
      assert(pinned.getAs[scala.collection.Seq[Row]]("pinnedKeys").map(_.getAs[String]("key")) == Seq("a"))
      call("CALL penstock.unpin(?, ?)", "a")
      assert(batch().getAs[Int]("pinned") == 0)
    }
  }

  test("procedures fail with the same errors as the functions") {
    run { (query, _) =>
      val id = query.runId.toString
      assert(errorOf("CALL penstock.set(?, 'task', '1')", id).errorClass == "PENSTOCK_UNKNOWN_SETTING")
      assert(errorOf("CALL penstock.set(?, 'tasks', 'many')", id).errorClass == "PENSTOCK_INVALID_SETTING")
      assert(errorOf("CALL penstock.pin(?, 1)", id).errorClass == "PENSTOCK_NO_SUCH_KEY")
      assert(errorOf("CALL penstock.pin(?)", id).errorClass == "PENSTOCK_NO_SUCH_KEY")
      val other = errorOf("CALL penstock.set('none', 'tasks', '1')")
      assert(other.errorClass == "PENSTOCK_NOT_RUNNING" && other.detail.contains(id))
    }
  }

  test("the procedures are listed, and unknown procedures fail") {
    val listed = spark.sql("SHOW PROCEDURES IN penstock").collect().map(_.mkString(" "))
    assert(Seq("set", "pin", "unpin").forall(name => listed.exists(_.contains(name))))
    val error = intercept[Exception](spark.sql("CALL penstock.flush()"))
    assert(error.getMessage.contains("flush"))
  }

  test("a user catalog with the name penstock is kept") {
    val own = Map("spark.sql.catalog.penstock" -> "a.B")
    val steps = conf.ApplicationSetup.plan(own, perQuery = false)
    assert(!steps.flatMap(_.change).map(_._1).contains("spark.sql.catalog.penstock"))
    assert(steps.exists(_.line.contains("spark.sql.catalog.penstock is a.B")))
  }
}
