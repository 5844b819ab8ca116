package org.apache.spark.sql.penstock.ui

import java.util.{Collections, UUID}

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.streaming.{SinkProgress, SourceProgress, StateOperatorProgress, StreamingQueryProgress}

import io.penstock.state.format.StoreKey
import io.penstock.status.{RunHistory, StatusDocument, StatusListener, StatusQuestion}
import io.penstock.telemetry.{OperatorLoad, ShardsMeasured, StateLoad}
import org.json4s.JsonAST._
import org.scalatest.funsuite.AnyFunSuite

/** What is kept of queries, its bounds, and the JSON document. */
class StatusListenerSuite extends AnyFunSuite {
  private val document = StatusDocument("0.1.0", "4.2.0", "app-1", "flights", "on")

  private def started(run: UUID, name: String = null): QueryStartedEvent =
    new QueryStartedEvent(UUID.randomUUID(), run, name, "2026-01-01T00:00:00.000Z")

  private def progress(run: UUID, batch: Long, phase: String = "addBatch"): QueryProgressEvent =
    new QueryProgressEvent(
      new StreamingQueryProgress(
        UUID.randomUUID(),
        run,
        null,
        "2026-01-01T00:00:01.000Z",
        batch,
        10L,
        Collections.singletonMap(phase, 7L),
        Collections.emptyMap[String, String](),
        Array.empty[StateOperatorProgress],
        Array.empty[SourceProgress],
        new SinkProgress("noop", -1L),
        Collections.emptyMap[String, Row]()
      )
    )

  private def measured(run: UUID, region: Long, batch: Long): ShardsMeasured =
    ShardsMeasured(
      run,
      region,
      batch,
      2,
      Array(0, 1, 1),
      Array(5L, 0L, 7L),
      Array(50L, 0L, 1L << 40),
      Array(60L, 1L << 41),
      Array(3L, 0L),
      Map(
        region -> OperatorLoad(Array(5L, 0L, 7L), Array(20L, 0L, 1L << 39)),
        region + 1 -> OperatorLoad(Array(2L, 0L, 7L), Array(30L, 0L, 1L << 39))
      ),
      Map(
        StoreKey(region, "right") -> StateLoad(Array(5L, 8L), Array(1L, 1L), Array(7L, 2L)),
        StoreKey(region, "left") -> StateLoad(Array(3L), Array(1L), Array(0L))
      )
    )

  private def batches(run: RunHistory): Seq[Long] = run.batches.map(_.batchId)

  test("the newest 100 batches of a known run are kept; progress without a batch is ignored") {
    val listener = new StatusListener
    val run = UUID.randomUUID()
    listener.onOtherEvent(progress(run, 0))
    listener.onOtherEvent(measured(run, 0, 0))
    assert(listener.runs.isEmpty)
    listener.onOtherEvent(started(run))
    (0L to 120L).foreach(b => listener.onOtherEvent(progress(run, b)))
    listener.onOtherEvent(progress(run, 121, phase = "latestOffset"))
    assert(batches(listener.runs.head) == (21L to 120L))
  }

  test("all running queries and the 20 that ended last are kept") {
    val listener = new StatusListener
    val runs = Seq.fill(60)(UUID.randomUUID())
    runs.foreach(r => listener.onOtherEvent(started(r)))
    runs.take(30).foreach(r => listener.onOtherEvent(new QueryTerminatedEvent(UUID.randomUUID(), r, None)))
    assert(listener.runs.map(_.runId) == runs.drop(10))
    assert(listener.runs.map(_.ended) == Seq.fill(20)(true) ++ Seq.fill(30)(false))
  }

  test("the document has the shards of each region's newest batch") {
    val listener = new StatusListener
    val run = UUID.randomUUID()
    listener.onOtherEvent(started(run, "late"))
    Seq(measured(run, 3, 0), measured(run, 0, 0), measured(run, 0, 1)).foreach(listener.onOtherEvent)
    listener.onOtherEvent(progress(run, 1))
    listener.onOtherEvent(new QueryTerminatedEvent(UUID.randomUUID(), run, Some("it broke\n\tat somewhere")))
    val json = document.json(listener.runs, StatusQuestion(1, None), timeMs = 5)
    assert(json \ "version" == JInt(1) && json \ "timeMs" == JInt(5) && json \ "application" \ "id" == JString("app-1"))
    val JArray(List(query)) = json \ "queries": @unchecked
    assert(query \ "name" == JString("late") && query \ "ended" == JBool(true))
    assert(query \ "exception" == JString("it broke"))
    val JArray(List(first, second)) = query \ "regions": @unchecked
    assert(first \ "region" == JInt(0) && first \ "batch" == JInt(1) && second \ "region" == JInt(3))
    assert(first \ "taskOf" == JArray(List(JInt(0), JInt(1), JInt(1))))
    assert(first \ "busyNs" == JArray(List(JInt(50), JInt(0), JInt(1L << 40))))
    assert(first \ "stateBytes" == JArray(List(JInt(8), JInt(8), JInt(0))))
    assert(first \ "keys" == JArray(List(JInt(2), JInt(1), JInt(0))))
    assert(first \ "operations" == JArray(List(JInt(7), JInt(2), JInt(0))))
    val JArray(List(lower, upper)) = second \ "operators": @unchecked
    assert(lower \ "operator" == JInt(3) && upper \ "operator" == JInt(4))
    assert(upper \ "rows" == JArray(List(JInt(2), JInt(0), JInt(7))))
    assert(upper \ "busyNs" == JArray(List(JInt(30), JInt(0), JInt(1L << 39))))
    val JArray(List(left, right)) = second \ "stores": @unchecked
    assert(left \ "operator" == JInt(3) && left \ "store" == JString("left") && left \ "keys" == JArray(List(JInt(1))))
    assert(right \ "store" == JString("right") && right \ "stateBytes" == JArray(List(JInt(5), JInt(8))))
    assert(right \ "operations" == JArray(List(JInt(7), JInt(2))))
    assert((query \ "batches")(0) \ "batchId" == JInt(1))
  }

  test("the name and exception of a query are null if absent") {
    val listener = new StatusListener
    listener.onOtherEvent(started(UUID.randomUUID()))
    val query = (document.json(listener.runs, StatusQuestion(1, None), 0) \ "queries")(0)
    assert(query \ "name" == JNull && query \ "exception" == JNull)
  }

  test("a request selects batches and queries, and an invalid one names the allowed values") {
    val listener = new StatusListener
    val runs = Seq.fill(2)(UUID.randomUUID())
    runs.zip(Seq("a", "b")).foreach { case (run, name) =>
      listener.onOtherEvent(started(run, name))
      (0L to 30L).foreach(b => listener.onOtherEvent(progress(run, b)))
    }
    def asked(parameters: (String, String)*): List[(String, Int)] =
      (document.json(listener.runs, StatusQuestion.of(parameters.toMap), 0) \ "queries").children.map { q =>
        ((q \ "name").values.toString, (q \ "batches").children.size)
      }
    assert(asked() == List("b" -> 20, "a" -> 20))
    assert(asked("batches" -> "0", "query" -> "a") == List("a" -> 0))
    assert(asked("batches" -> "100", "query" -> runs(1).toString) == List("b" -> 31))
    assert(asked("query" -> listener.runs.head.id.toString) == List("a" -> 20))
    assert(asked("query" -> "c").isEmpty)
    Seq("batches" -> "101", "batches" -> "-1", "batches" -> "all", "since" -> "3").foreach { case (key, value) =>
      val message = intercept[IllegalArgumentException](StatusQuestion.of(Map(key -> value))).getMessage
      assert(message.contains(key) && message.contains("allowed:"), message)
    }
  }
}
