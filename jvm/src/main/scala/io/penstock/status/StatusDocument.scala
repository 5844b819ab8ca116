package io.penstock.status

import io.penstock.state.format.StoreKey
import io.penstock.telemetry.{OperatorLoad, ShardsMeasured, StateLoad}
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

/**
 * What the driver tells of its queries, as JSON: PROTOCOL.md, section 10.
 *
 * @param penstock
 *   version
 * @param spark
 *   version
 * @param mode
 *   of the application
 */
final case class StatusDocument(
    penstock: String,
    spark: String,
    applicationId: String,
    applicationName: String,
    mode: String
) {

  /** @param runs in the order in which they started */
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

  private def operator(of: (Long, OperatorLoad)): JObject =
    ("operator" -> of._1) ~ ("rows" -> of._2.rows.toSeq) ~ ("busyNs" -> of._2.busyNs.toSeq)

  private def store(of: (StoreKey, StateLoad)): JObject =
    ("operator" -> of._1.operatorId) ~
      ("store" -> of._1.storeName) ~
      ("stateBytes" -> of._2.bytes.toSeq) ~
      ("keys" -> of._2.keys.toSeq) ~
      ("operations" -> of._2.operations.toSeq)

  // A field without a value is left out by json4s, and one of another type is not null.
  private def orNull(text: Option[String]): JValue = text.fold[JValue](JNull)(JString(_))
}

object StatusDocument {

  /** Of the section of PROTOCOL.md. */
  val Version = 1
}
