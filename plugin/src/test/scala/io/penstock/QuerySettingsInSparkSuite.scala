package io.penstock

import java.nio.file.{Files, Path}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery

import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Invalid settings of a query stop it before its first batch, with an error that states what is allowed. */
class QuerySettingsInSparkSuite extends AnyFunSuite with BeforeAndAfterAll with Patience {
  private lazy val spark = SparkSession.builder().master("local[2]").appName("settings")
    .config("spark.ui.enabled", "false").config("spark.plugins", "io.penstock.PenstockPlugin")
    .config("spark.penstock.shards", "4").getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private def start(session: SparkSession, checkpoint: Path, options: Map[String, String]): StreamingQuery =
    session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
      .groupBy("value").count().writeStream.outputMode("update").format("noop")
      .option("checkpointLocation", checkpoint.toString).options(options).start()

  private def failure(session: SparkSession, options: (String, String)*): String = {
    val checkpoint = Files.createTempDirectory("penstock-settings")
    // Errors in the session's settings fail the start; errors in the query's options fail the query.
    val error = intercept[Exception](start(session, checkpoint, options.toMap).awaitTermination(60000): Unit)
    assert(!Files.exists(checkpoint.resolve("commits").resolve("0")), "a batch was run")
    Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).map(_.getMessage).mkString("\n")
  }

  test("an unknown option fails with key, value, nearest key and where all options are listed") {
    val text = failure(spark, "penstock.thetta" -> "1.1")
    Seq("PENSTOCK_UNKNOWN_SETTING", "penstock.thetta=1.1", "Did you mean penstock.theta?", "penstock config")
      .foreach(t => assert(text.contains(t)))
  }

  test("an option out of range or of the wrong type fails with the allowed values") {
    Seq("1.0", "much").foreach { value =>
      val text = failure(spark, "penstock.theta" -> value)
      Seq("PENSTOCK_INVALID_SETTING", s"'$value'", "greater than 1 and at most 10").foreach(t =>
        assert(text.contains(t))
      )
    }
  }

  test("the number of shards cannot be set for a single query") {
    val text = failure(spark, "penstock.shards" -> "8")
    assert(text.contains("PENSTOCK_SETTING_SCOPE") && text.contains("--conf spark.penstock.shards=8"))
  }

  test("an invalid setting of a session stops only the queries of that session") {
    val session = spark.newSession()
    session.conf.set("spark.penstock.mode", "sometimes")
    val text = failure(session)
    assert(text.contains("PENSTOCK_INVALID_SETTING") && text.contains("off, observe, on"))
    val good = start(spark, Files.createTempDirectory("penstock-settings"), Map("penstock.theta" -> "1.2"))
    try {
      awaitBatch(good)
      assert(good.exception.isEmpty && good.lastProgress.stateOperators.head.numShufflePartitions == 4)
    } finally good.stop()
  }

  /** Waits for one batch, because the source never ends. */
  private def awaitBatch(query: StreamingQuery): Unit =
    eventually(assert(query.lastProgress != null || !query.isActive))
}
