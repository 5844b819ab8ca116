package org.apache.spark.sql.penstock.ui

import scala.jdk.CollectionConverters._
import scala.xml.Node

import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.report.ReportRows
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.ui.{UIUtils, WebUIPage}

import io.penstock.status.{RunHistory, StatusDocument, StatusListener, StatusQuestion}
import jakarta.servlet.http.HttpServletRequest
import org.json4s.JValue

/** Page with the decisions for each query, newest batches first. PROTOCOL.md, section 10, specifies its JSON. */
final private[ui] class StatusPage(tab: PenstockTab, document: => StatusDocument, listener: StatusListener)
    extends WebUIPage("") {
  import StatusPage._

  // Spark answers with 400 and the message where this throws an IllegalArgumentException.
  override def renderJson(request: HttpServletRequest): JValue = {
    // Only the first value of a repeated parameter counts.
    val parameters = request.getParameterMap.asScala.map { case (key, values) => key -> values.head }.toMap
    document.json(listener.runs, StatusQuestion.of(parameters), System.currentTimeMillis())
  }

  override def render(request: HttpServletRequest): Seq[Node] = {
    val runs = listener.runs.reverse
    val content =
      <div>
        <p>
          Mode <strong>{document.mode}</strong>. This page as JSON:
          <a href={UIUtils.prependBaseUri(request, "/penstock/json/")}>/penstock/json</a>; in a terminal:
          <code>penstock top</code>.
        </p>
        {if (runs.isEmpty) <p>No streaming query was started yet.</p> else runs.flatMap(run)}
      </div>
    UIUtils.headerSparkPage(request, "Penstock", content, tab)
  }

  private def run(run: RunHistory): Seq[Node] = {
    val state = if (!run.ended) "running" else run.exception.fold("ended")(_ => "failed")
    val lines = run.batches.reverseIterator.take(StatusQuestion.UsualBatches).flatMap(linesOf).toSeq
    <h4>{run.name.getOrElse(run.id.toString)} <small>{state}, run {run.runId.toString}</small></h4> ++
      UIUtils.listingTable[Line](
        Headers,
        line => <tr>{line.map(cell => <td>{cell}</td>)}</tr>,
        lines,
        fixedWidth = false
      )
  }

  private def linesOf(progress: StreamingQueryProgress): Seq[Line] =
    ReportRows.of(progress).toSeq.flatMap { report =>
      val start = Seq(progress.batchId.toString, progress.durationMs.get("triggerExecution").toString)
      val regions = ReportRows.regions(report)
      if (regions.isEmpty) Seq(start ++ Seq.fill(Headers.size - start.size - 1)("") :+ text(report, "reason"))
      else regions.map(region => start ++ lineOf(region))
    }

  private def lineOf(region: Row): Line = {
    val key = region.getAs[scala.collection.Seq[Row]]("heavyKeys").headOption
      .fold("") { k =>
        val share = Option(k.getAs[java.lang.Double]("busyShare")).getOrElse(k.getAs[java.lang.Double]("rowsShare"))
        f"${k.getAs[String]("key")} (${100 * share}%.0f %%)"
      }
    val reasons = if (region.getAs[Boolean]("routed")) Seq(text(region, "decision"), text(region, "inTurn"))
    else Seq(text(region, "reason"))
    val decision = reasons.filter(_.nonEmpty).mkString("; ")
    Seq(text(region, "operators"), text(region, "tasks"), text(region, "rows")) ++
      Seq("imbalanceBefore", "expectedImbalance").map(ratio(region, _)) ++ Seq(achieved(region)) ++
      Seq(text(region, "shardsMoved"), key, pinned(region), decision)
  }

  private def achieved(region: Row): String = {
    val imbalance = ratio(region, "achievedImbalance")
    if (imbalance.isEmpty && text(region, "busyMs").nonEmpty) "too short" else imbalance
  }

  private def pinned(region: Row): String =
    Option(region.getAs[scala.collection.Seq[Row]]("pinnedKeys")).fold("") {
      _.map(k => s"${k.getAs[String]("key")}${if (k.getAs[Boolean]("seen")) "" else " (never seen)"}").mkString(", ")
    }

  private def text(row: Row, field: String): String = Option(row.getAs[Any](field)).fold("")(_.toString)

  private def ratio(row: Row, field: String): String =
    Option(row.getAs[java.lang.Double](field)).fold("")(value => f"$value%.2f")
}

private object StatusPage {
  type Line = Seq[String]

  val Headers: Seq[String] = Seq(
    "Batch",
    "ms",
    "Operators",
    "Tasks",
    "Rows",
    "Imbalance before",
    "expected",
    "achieved",
    "Shards moved",
    "Heaviest key",
    "Pinned keys",
    "Decision"
  )
}
