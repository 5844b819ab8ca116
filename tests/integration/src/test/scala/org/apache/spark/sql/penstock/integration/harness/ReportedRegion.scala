package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.StreamingQueryProgress

/**
 * A region in the progress of a batch.
 *
 * @param pinned
 *   Number of pinned keys
 * @param work
 *   Number of input rows, and number of state operations
 * @param moved
 *   Bytes that moved to other executors, and milliseconds in which tasks loaded state
 * @param brought
 *   Number of shards that moved, by transport
 * @param homes
 *   Number of executors that run the region's tasks, the reason for the homes of shards, and the number of shards that
 *   moved ahead of the tasks
 * @param elsewhere
 *   Number of tasks that ran on another executor than planned
 * @param reason
 *   Reason why the region is not routed
 */
final case class ReportedRegion(
    operators: String,
    routed: Boolean,
    tasks: Int,
    pinned: Int,
    work: (Option[Long], Option[Long]),
    moved: (Long, Long),
    brought: Option[String],
    homes: (Option[Int], Option[String], Int),
    elsewhere: Option[Int],
    reason: Option[String]
)

object ReportedRegion {

  /** The progress of batches with state. An idle query also reports progress now and then, without a batch. */
  def withState(progress: Seq[StreamingQueryProgress]): Seq[StreamingQueryProgress] =
    progress.filter(p => p.stateOperators.nonEmpty && p.durationMs.containsKey("addBatch"))

  /** The regions of each batch with state, in the order of the batches. */
  def of(progress: Seq[StreamingQueryProgress]): Seq[Seq[ReportedRegion]] =
    withState(progress).map { batch =>
      Option(
        batch.observedMetrics.get("penstock")
      ).toSeq.flatMap(_.getAs[scala.collection.Seq[Row]]("regions")).map(region)
    }

  private def region(row: Row): ReportedRegion = ReportedRegion(
    row.getAs[String]("operators"),
    row.getAs[Boolean]("routed"),
    row.getAs[Int]("tasks"),
    row.getAs[Int]("pinned"),
    (number(row, "rows"), number(row, "stateOperations")),
    (number(row, "bytesMoved").getOrElse(0L), number(row, "loadMs").getOrElse(0L)),
    Option(row.getAs[String]("brought")).filter(_.nonEmpty),
    (
      Option(row.getAs[Any]("executors")).map(_.asInstanceOf[Int]),
      Option(row.getAs[String]("homes")),
      Option(row.getAs[Any]("shardsAhead")).fold(0)(_.asInstanceOf[Int])
    ),
    Option(row.getAs[Any]("tasksElsewhere")).map(_.asInstanceOf[Int]),
    Option(row.getAs[String]("reason"))
  )

  private def number(row: Row, field: String): Option[Long] = Option(row.getAs[Any](field)).map(_.asInstanceOf[Long])

  /** Evidence that a case did not run as expected, that is, routed and with a changing number of tasks. */
  def contradictions(test: OperatorCase, progress: Seq[StreamingQueryProgress]): Seq[String] = {
    val batches = of(progress)
    val unreported = batches.count(_.isEmpty)
    val regions = batches.flatten
    val reasons = regions.filterNot(_.routed).map(_.reason.getOrElse("none given")).distinct
    val wrong = test.unrouted match {
      case None => reasons.map(reason => s"a region was not routed: $reason")
      case Some(text) if !reasons.exists(_.contains(text)) =>
        Seq(s"no region was unrouted for this reason: $text; reasons found: $reasons")
      case Some(text) => reasons.filterNot(_.contains(text)).map(reason => s"a region was not routed: $reason")
    }
    val counts = regions.filter(_.routed).map(_.tasks).distinct
    wrong ++
      Option.when(unreported > 0)(s"$unreported batches have no report of Penstock in their progress") ++
      Option.when(
        test.unrouted.isEmpty && test.shards > 1 && counts.size < 2
      )(s"the number of tasks did not change: ${counts.mkString(", ")}")
  }
}
