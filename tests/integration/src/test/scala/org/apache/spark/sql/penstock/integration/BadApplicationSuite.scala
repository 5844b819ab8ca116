package org.apache.spark.sql.penstock.integration

import org.apache.spark.SparkContext
import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._

import org.scalatest.funsuite.AnyFunSuite

/** Misconfigured applications do not start, or fail their queries, and the error says why. */
class BadApplicationSuite extends AnyFunSuite with TestDirectory {

  private def start(conf: Map[String, String], master: String = "local[1]"): classic.SparkSession =
    Applications.start(suiteName, master, newDirectory("warehouse"), Applications.Plugin ++ conf)

  private def refusal(conf: (String, String)*): Throwable = {
    val error = intercept[Exception](start(conf.toMap))
    assert(SparkContext.getActive.isEmpty, "the application runs")
    error
  }

  test("too many shards are rejected") {
    val error = refusal("spark.penstock.shards" -> "65537")
    assert(Errors.missing(error, "PENSTOCK_INVALID_SETTING", "spark.penstock.shards", "65537", "65536").isEmpty)
  }

  test("a number of shards that is not a number is rejected") {
    val error = refusal("spark.penstock.shards" -> "many")
    assert(Errors.missing(error, "PENSTOCK_INVALID_SETTING", "spark.penstock.shards", "'many'", "integer").isEmpty)
  }

  test("an unknown setting is rejected, and the error names the nearest known one") {
    val error = refusal("spark.penstock.shard" -> "16")
    assert(Errors.missing(error, "PENSTOCK_UNKNOWN_SETTING", "Did you mean spark.penstock.shards?").isEmpty)
  }

  test("executors without the plugin on their class path fail the query") {
    val query = new CountingQuery(newDirectory("source"), newDirectory("checkpoint"))
    val session = start(
      Map(
        "spark.executor.extraClassPath" -> LocalCluster.withoutPenstock(sys.props("java.class.path")),
        "spark.executor.memory" -> "512m"
      ),
      master = "local-cluster[1,1,1024]"
    )
    try {
      val error = intercept[Exception](query.runOn(session))
      assert(Errors.missing(error, "PENSTOCK_EXECUTOR_START", "io.penstock.PenstockPlugin", "--jars").isEmpty)
    } finally session.stop()
    val again = start(Map.empty)
    try assert(query.runOn(again)._1 == query.expected)
    finally again.stop()
  }
}
