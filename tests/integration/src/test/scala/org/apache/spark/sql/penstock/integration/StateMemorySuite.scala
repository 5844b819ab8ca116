package org.apache.spark.sql.penstock.integration

import org.apache.spark.memory.UnifiedMemoryManager
import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.penstock.state.ShardStores

import org.scalatest.funsuite.AnyFunSuite

/** State is bounded in memory: past the bound a query fails with an error that says what to do, and loses nothing. */
class StateMemorySuite extends AnyFunSuite with OneApplicationAtATime {
  private val maxBytes = "spark.penstock.state.maxBytes"

  private def withPlugin(conf: (String, String)*): classic.SparkSession =
    application(Applications.Plugin ++ Map("spark.penstock.shards" -> "16") ++ conf)

  private def newQuery() = new CountingQuery(newDirectory("source"), newDirectory("checkpoint"))

  private def refusal(query: CountingQuery, session: classic.SparkSession): Throwable = {
    val error = intercept[Exception](query.runOn(session))
    assert(Errors.missing(
      error,
      "PENSTOCK_STATE_TOO_LARGE",
      maxBytes,
      "executor driver",
      "shards of",
      query.checkpoint.toString,
      "spark.executor.memory"
    ).isEmpty)
    error
  }

  test("changes that are too large end their query; with more room it goes on and nothing is lost") {
    val query = newQuery()
    val error = intercept[Exception](query.runOn(withPlugin(maxBytes -> "1k")))
    assert(Errors.missing(error, "PENSTOCK_STATE_TOO_LARGE", s"$maxBytes=1k", "1024").isEmpty)
    assert(query.runOn(withPlugin())._1 == query.expected)
  }

  test(
    "content that is too large to be loaded or folded ends its query; with more room it goes on and nothing is lost"
  ) {
    val query = newQuery()
    (0 until 3).foreach(_ => assert(query.runOn(withPlugin())._1 == query.expected))
    refusal(query, withPlugin(maxBytes -> "2k"))
    // A task that is killed with its query takes a moment longer to end.
    await(s"${ShardStores.memory.bytes} bytes: what refused tasks brought in was not given back") {
      ShardStores.memory.bytes < 2048L
    }
    refusal(query, withPlugin(maxBytes -> "6k"))
    assert(query.runOn(withPlugin())._1 == query.expected)
    assert(query.runOn(withPlugin(maxBytes -> "100%"))._1 == query.expected)
  }

  test("shards of queries that have ended make room before anything fails") {
    val first = newQuery()
    val probe = withPlugin()
    (0 until 2).foreach(_ => first.runOn(probe))
    val one = ShardStores.memory.bytes
    // Room for one query with its changes, and by far not for ten.
    val session = withPlugin(maxBytes -> (3 * one).toString)
    (0 until 10).foreach { _ =>
      val query = newQuery()
      (0 until 2).foreach(_ => assert(query.runOn(session)._1 == query.expected))
      // What a task commits is not refused any more, and counts.
      assert(ShardStores.memory.bytes <= 4 * one)
    }
    assert(first.runOn(session)._1 == first.expected)
  }

  test("state leaves the memory of a JVM that outlives its application") {
    val session = withPlugin()
    val query = newQuery()
    query.runOn(session)
    assert(ShardStores.all.nonEmpty && ShardStores.memory.bytes > 0L)
    session.stop()
    assert(ShardStores.all.isEmpty && ShardStores.memory.bytes == 0L)
    assert(query.runOn(withPlugin())._1 == query.expected)
  }

  test("Spark is told how much state there is, and is told no more when there is none") {
    val session = withPlugin("spark.memory.unmanagedMemoryPollingInterval" -> "20ms")
    val query = newQuery()
    (0 until 2).foreach(_ => query.runOn(session))
    val bytes = ShardStores.memory.bytes
    assert(bytes > 16 * 512L)
    assert(UnifiedMemoryManager.getMemoryByComponentType("Penstock") == bytes)
    awaitPolled(bytes)
    ShardStores.dropAll()
    awaitPolled(0L)
  }

  private def awaitPolled(bytes: Long): Unit =
    await(s"Spark counts ${UnifiedMemoryManager.getUnmanagedMemoryUsed}, not $bytes bytes") {
      UnifiedMemoryManager.getUnmanagedMemoryUsed == bytes
    }

  private def await(otherwise: => String)(condition: => Boolean): Unit = {
    val deadline = System.nanoTime() + 20L * 1000 * 1000 * 1000
    while (!condition) {
      assert(System.nanoTime() < deadline, otherwise)
      Thread.sleep(20)
    }
  }
}
