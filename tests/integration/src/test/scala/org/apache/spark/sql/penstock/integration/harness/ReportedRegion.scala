package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.StreamingQueryProgress

/**
 * What a batch's progress says of one region.
 *
 * @param pinned
 *   keys that have a shard of their own
 * @param work
 *   rows that came in, and operations of its state
 * @param moved
 *   bytes that came to another executor, and milliseconds in which tasks brought state
 * @param brought
 *   how many shards that was, by how they came
 * @param homes
 *   executors that its tasks are divided among, why its shards are on these, and shards that came ahead
 * @param elsewhere
 *   tasks that ran on another executor than was meant
 * @param reason
 *   why it is not routed
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

  /** What is of batches with state. A query that waits reports progress too, now and then, without a batch. */
  def withState(progress: Seq[StreamingQueryProgress]): Seq[StreamingQueryProgress] =
    progress.filter(p => p.stateOperators.nonEmpty && p.durationMs.containsKey("addBatch"))

  /** The regions of each batch that had state, in the order of the batches. */
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

  /** What contradicts that a case ran as it should: routed, with a number of tasks that changes. */
  def contradictions(test: OperatorCase, progress: Seq[StreamingQueryProgress]): Seq[String] = {
    val batches = of(progress)
    val unreported = batches.count(_.isEmpty)
    val regions = batches.flatten
    val reasons = regions.filterNot(_.routed).map(_.reason.getOrElse("none given")).distinct
    val wrong = test.unrouted match {
      case None => reasons.map(reason => s"a region was not routed: $reason")
      case Some(text) if !reasons.exists(_.contains(text)) =>
        Seq(s"no region was left unrouted because of: $text; $reasons")
      case Some(text) => reasons.filterNot(_.contains(text)).map(reason => s"a region was not routed: $reason")
    }
    val counts = regions.filter(_.routed).map(_.tasks).distinct
    wrong ++
      Option.when(unreported > 0)(s"$unreported batches have no report of Penstock in their progress") ++
      Option.when(
        test.unrouted.isEmpty && test.shards > 1 && counts.size < 2
      )(s"numbers of tasks over all batches: ${counts.mkString(", ")}")
  }
}
