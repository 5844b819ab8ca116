package io.penstock.status

import io.penstock.state.format.StoreKey
import io.penstock.telemetry.{OperatorLoad, ShardsMeasured, StateLoad}
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

/**
 * Status of the driver's queries as JSON: docs/PROTOCOL.md, section 10.
 *
 * @param penstock
 *   version of Penstock
 * @param spark
 *   version of Spark
 * @param mode
 *   mode of the application
 */
final case class StatusDocument(
    penstock: String,
    spark: String,
    applicationId: String,
    applicationName: String,
    mode: String
) {

  /** @param runs runs in the order in which they started; the document lists the newest first */
  def json(runs: Seq[RunHistory], question: StatusQuestion, timeMs: Long): JObject =
    ("version" -> StatusDocument.Version) ~
      ("penstock" -> penstock) ~
      ("spark" -> spark) ~
      ("application" -> (("id" -> applicationId) ~ ("name" -> applicationName))) ~
      ("mode" -> mode) ~
      ("timeMs" -> timeMs) ~
      ("queries" -> runs.reverse.filter(question.asks).map(run(_, question.batches)))

  private def run(run: RunHistory, batches: Int): JObject =
    ("id" -> run.id.toString) ~
      ("runId" -> run.runId.toString) ~
      ("name" -> orNull(run.name)) ~
      ("startedAt" -> run.startedAt) ~
      ("ended" -> run.ended) ~
      ("exception" -> orNull(run.exception.map(_.linesIterator.nextOption().getOrElse("")))) ~
      ("batches" -> run.batches.takeRight(batches).map(progress => JsonMethods.parse(progress.json))) ~
      ("regions" -> run.regions.values.map(shards))

  private def shards(s: ShardsMeasured): JObject = {
    val state = s.state
    ("region" -> s.region) ~
      ("batch" -> s.batchId) ~
      ("tasks" -> s.tasks) ~
      ("taskOf" -> s.taskOf.toSeq) ~
      ("rows" -> s.rows.toSeq) ~
      ("busyNs" -> s.busyNs.toSeq) ~
      ("tasksBusyNs" -> s.tasksBusyNs.toSeq) ~
      ("tasksWaitNs" -> s.tasksWaitNs.toSeq) ~
      ("stateBytes" -> state.bytes.toSeq) ~
      ("keys" -> state.keys.toSeq) ~
      ("operations" -> state.operations.toSeq) ~
      ("operators" -> s.operators.toSeq.sortBy(_._1).map(operator)) ~
      ("stores" -> s.stores.toSeq.sortBy { case (key, _) => (key.operatorId, key.storeName) }.map(store))
  }

  private def operator(entry: (Long, OperatorLoad)): JObject =
    ("operator" -> entry._1) ~ ("rows" -> entry._2.rows.toSeq) ~ ("busyNs" -> entry._2.busyNs.toSeq)

  private def store(entry: (StoreKey, StateLoad)): JObject =
    ("operator" -> entry._1.operatorId) ~
      ("store" -> entry._1.storeName) ~
      ("stateBytes" -> entry._2.bytes.toSeq) ~
      ("keys" -> entry._2.keys.toSeq) ~
      ("operations" -> entry._2.operations.toSeq)

  // json4s omits a field whose Option is None, but the document must contain null.
  private def orNull(text: Option[String]): JValue = text.fold[JValue](JNull)(JString(_))
}

object StatusDocument {

  /** Version of the document's format in docs/PROTOCOL.md. */
  val Version = 1
}
