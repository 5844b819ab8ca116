package org.apache.spark.sql.penstock.integration

import org.apache.spark.memory.UnifiedMemoryManager
import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.penstock.state.ShardStores

import io.penstock.{Patience, SameOnEverySpark}
import org.scalatest.funsuite.AnyFunSuite

/** State in memory is bounded: past the bound a query fails, loses nothing, and the error says what to do. */
@SameOnEverySpark
class StateMemorySuite extends AnyFunSuite with OneApplicationAtATime with Patience {
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

  test("changes above the memory bound fail their query, which continues with a higher bound") {
    val query = newQuery()
    val error = intercept[Exception](query.runOn(withPlugin(maxBytes -> "1k")))
    assert(Errors.missing(error, "PENSTOCK_STATE_TOO_LARGE", s"$maxBytes=1k", "1024").isEmpty)
    assert(query.runOn(withPlugin())._1 == query.expected)
  }

  test("content above the memory bound fails its query, which continues with a higher bound") {
    val query = newQuery()
    (0 until 3).foreach(_ => assert(query.runOn(withPlugin())._1 == query.expected))
    refusal(query, withPlugin(maxBytes -> "2k"))
    // A task that is killed with its query ends a moment later.
    eventually(assert(ShardStores.current.memory.bytes < 2048L, "the content of failed tasks was not released"))
    refusal(query, withPlugin(maxBytes -> "6k"))
    assert(query.runOn(withPlugin())._1 == query.expected)
    assert(query.runOn(withPlugin(maxBytes -> "100%"))._1 == query.expected)
  }

  test("shards of ended queries are dropped before a query fails") {
    val first = newQuery()
    val probe = withPlugin()
    (0 until 2).foreach(_ => first.runOn(probe))
    val one = ShardStores.current.memory.bytes
    // Enough for one query with its changes, and far too little for ten.
    val session = withPlugin(maxBytes -> (3 * one).toString)
    (0 until 10).foreach { _ =>
      val query = newQuery()
      (0 until 2).foreach(_ => assert(query.runOn(session)._1 == query.expected))
      // Changes are not rejected any more once they are committed, but they still count.
      assert(ShardStores.current.memory.bytes <= 4 * one)
    }
    assert(first.runOn(session)._1 == first.expected)
  }

  test("a JVM that outlives its application releases the state") {
    val session = withPlugin()
    val query = newQuery()
    query.runOn(session)
    val stores = ShardStores.current
    assert(stores.all.nonEmpty && stores.memory.bytes > 0L)
    session.stop()
    assert(stores.all.isEmpty && stores.memory.bytes == 0L)
    assert(query.runOn(withPlugin())._1 == query.expected)
  }

  test("Spark's unmanaged memory includes the state until it is released") {
    val session = withPlugin("spark.memory.unmanagedMemoryPollingInterval" -> "20ms")
    val query = newQuery()
    (0 until 2).foreach(_ => query.runOn(session))
    val bytes = ShardStores.current.memory.bytes
    assert(bytes > 16 * 512L)
    assert(UnifiedMemoryManager.getMemoryByComponentType("Penstock") == bytes)
    eventually(assert(UnifiedMemoryManager.getUnmanagedMemoryUsed == bytes))
    ShardStores.current.dropAll()
    eventually(assert(UnifiedMemoryManager.getUnmanagedMemoryUsed == 0L))
  }
}
