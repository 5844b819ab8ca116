package org.apache.spark.sql.penstock.integration

import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException, Trigger}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row, classic}

import io.penstock.errors.PenstockException
import io.penstock.routing.ShardPolicy
import org.scalatest.funsuite.AnyFunSuite

/** Settings and queries that cannot work fail before the first batch, and the error says what to do. */
class BadQuerySuite extends AnyFunSuite with PenstockApplication {

  test("an error for an unknown option names the nearest known one") {
    val error = refusal(options = Map("penstock.polisy" -> "hybrid"))
    assert(error.errorClass == "PENSTOCK_UNKNOWN_SETTING")
    assert(Errors.missing(error, "penstock.polisy", "hybrid", "Did you mean penstock.policy?").isEmpty)
  }

  test("an error for an unknown session setting names the nearest known one") {
    val error = refusal(conf = Map("spark.penstock.teta" -> "1.1"))
    assert(error.errorClass == "PENSTOCK_UNKNOWN_SETTING")
    assert(Errors.missing(error, "spark.penstock.teta", "1.1", "Did you mean spark.penstock.theta?").isEmpty)
  }

  test("an error in the session's settings fails the start of a query") {
    val session = application.newSession()
    session.conf.set("spark.penstock.teta", "1.1")
    val error = intercept[PenstockException](waiting(session))
    assert(error.errorClass == "PENSTOCK_UNKNOWN_SETTING" && error.getSqlState == "42K0I")
  }

  test("an error in its options fails a query by the time start returns, even without data") {
    val query = waiting(application.newSession(), "penstock.theta" -> "0.9")
    assert(!query.isActive)
    val error = query.exception.flatMap(Errors.penstock(_)).getOrElse(fail(s"not failed: ${query.status}"))
    assert(error.errorClass == "PENSTOCK_INVALID_SETTING" && Errors.missing(error, "penstock.theta", "'0.9'").isEmpty)
    assert(error.getCondition == "PENSTOCK_INVALID_SETTING" && error.getSqlState == "22022")
    assert(query.exception.get.getMessage.contains("SQLSTATE: 22022"))
    assert(intercept[StreamingQueryException](query.awaitTermination(1000): Unit).getMessage.contains("penstock.theta"))
    // Other queries are not affected, and no listener is left behind.
    val session = application.newSession()
    val good = waiting(session, "penstock.theta" -> "1.5")
    try assert(good.isActive && good.exception.isEmpty && session.streams.listListeners().isEmpty)
    finally good.stop()
  }

  /** Starts a query without any input. */
  private def waiting(session: classic.SparkSession, options: (String, String)*): StreamingQuery = {
    val source = MemoryStream[Event](Encoders.product[Event], session)
    source.toDF().groupBy("key").count().writeStream.outputMode("update").format("noop")
      .option("checkpointLocation", newDirectory("checkpoint").toString).options(options.toMap).start()
  }

  test("a value out of range is rejected") {
    val error = refusal(options = Map("penstock.theta" -> "0.9"))
    assert(error.errorClass == "PENSTOCK_INVALID_SETTING")
    assert(Errors.missing(error, "penstock.theta", "'0.9'", "greater than 1").isEmpty)
  }

  test("a value of the wrong type is rejected") {
    val error = refusal(options = Map("penstock.theta" -> "balanced"))
    assert(error.errorClass == "PENSTOCK_INVALID_SETTING")
    assert(Errors.missing(error, "penstock.theta", "'balanced'", "a number").isEmpty)
  }

  test("a value that is not one of the allowed words is rejected") {
    val error = refusal(options = Map("penstock.policy" -> "chaos(monday)"))
    assert(error.errorClass == "PENSTOCK_INVALID_SETTING")
    assert(Errors.missing(
      error,
      "penstock.policy",
      "'chaos(monday)'",
      (ShardPolicy.named.map(_.toString) ++ ShardPolicy.seeded.map(s => s"${s._1}(<seed>)")).mkString(", ")
    ).isEmpty)
  }

  test("an application setting in a query's options is rejected") {
    val error = refusal(options = Map("penstock.shards" -> "16"))
    assert(error.errorClass == "PENSTOCK_SETTING_SCOPE")
    assert(Errors.missing(error, "penstock.shards", "spark.penstock.shards=16").isEmpty)
  }

  test("too many shards by way of Spark's own setting are rejected") {
    val error = refusal(conf = Map("spark.sql.streaming.internal.stateStore.partitions" -> "65537"))
    assert(Errors.missing(error, "65537", "65536").isEmpty)
  }

  test("a query without strict distribution is rejected") {
    val error = refusal(conf = Map("spark.sql.streaming.statefulOperator.useStrictDistribution" -> "false"))
    assert(Errors.missing(error, "spark.sql.streaming.statefulOperator.useStrictDistribution").isEmpty)
  }

  test("keys that Spark rejects fail as in plain Spark") {
    val expressions = Seq(
      "string whose equality is not that of its bytes" -> "collate(cast(key as string), 'UTF8_LCASE')",
      "variant" -> "parse_json(cast(key as string))"
    )
    expressions.foreach { case (description, expression) =>
      def query(rows: DataFrame) = rows.groupBy(expr(expression).as("k")).count()
      val stock = failure(Engine.stock(Engine.HdfsBacked, 3).session(application), query = query)
      val ours = failure(application.newSession(), query = query)
      assert(Errors.penstock(ours).isEmpty, description)
      assert(condition(ours).nonEmpty && condition(ours) == condition(stock), description)
    }
  }

  private def condition(error: Throwable): Option[String] =
    Errors.causes(error).collect { case spark: org.apache.spark.SparkThrowable => spark.getCondition }.lastOption

  private def refusal(options: Map[String, String] = Map.empty, conf: Map[String, String] = Map.empty) = {
    val session = application.newSession()
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    val error = failure(session, options)
    Errors.penstock(error).getOrElse(fail(s"not Penstock's error: ${Errors.text(error)}")): PenstockException
  }

  /** Returns the error of a query that must fail before it gives a row or ends a batch. */
  private def failure(
      session: classic.SparkSession,
      options: Map[String, String] = Map.empty,
      query: DataFrame => DataFrame = _.groupBy("key").count()
  ): Throwable = {
    val source = MemoryStream[Event](Encoders.product[Event], session)
    source.addData(new EventGenerator(seed = 5).input(0, 50))
    val checkpoint = newDirectory("checkpoint")
    val rows = mutable.ArrayBuffer.empty[Row]
    val error = intercept[Exception](PublicRun.toTheEnd(
      query(source.toDF()).writeStream
        .outputMode("update")
        .option("checkpointLocation", checkpoint.toString)
        .options(options)
        .trigger(Trigger.AvailableNow())
        .foreachBatch { (batch: Dataset[Row], _: Long) =>
          rows ++= batch.collect()
          ()
        }
    ))
    assert(rows.isEmpty)
    assert(!ended(checkpoint, batch = 0))
    error
  }

  private def ended(checkpoint: Path, batch: Long) = Files.exists(checkpoint.resolve("commits").resolve(batch.toString))
}
