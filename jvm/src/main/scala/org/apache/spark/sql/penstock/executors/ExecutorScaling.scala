package org.apache.spark.sql.penstock.executors

import java.time.Instant
import java.util.UUID

import scala.collection.mutable
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.report.ReportRows
import org.apache.spark.sql.streaming.StreamingQueryListener.{QueryProgressEvent, QueryTerminatedEvent}
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.util.ThreadUtils
import org.apache.spark.{ExecutorAllocationClient, SparkContext}

import io.penstock.context.Component
import io.penstock.control.{Demand, Planner, Scaled}
import io.penstock.process.DaemonPool

/**
 * Requests as many executors from Spark as the latency targets of queries require, and releases the others. The
 * driver's planner determines the number; without a planner it does not change. An executor that is released hands its
 * shards over.
 *
 * @param context
 *   Context of the application
 * @param minExecutors
 *   Minimum number of executors
 * @param maxExecutors
 *   Maximum number of executors; 0 for the largest number that there has been at once
 * @param targets
 *   Latency targets of the queries
 * @param planner
 *   Determines the number of executors
 */
final class ExecutorScaling(
    context: SparkContext,
    minExecutors: Int,
    maxExecutors: Int,
    targets: LatencyTargets,
    planner: Planner
) extends SparkListener
    with Component
    with Logging {
  private val thread = new DaemonPool(ThreadUtils.newDaemonFixedThreadPool(1, "penstock-scaling"))

  // Only used by Spark's listener thread.
  private val startMs = mutable.Map.empty[UUID, Long]
  private var maxSeen = 0

  // Only used by this class's thread.
  private val wanted = mutable.Map.empty[UUID, Int]
  private var requested = 0

  private def spark: Option[ExecutorAllocationClient] = context.schedulerBackend match {
    case client: ExecutorAllocationClient => Some(client)
    case _ => None
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: QueryProgressEvent => ReportRows.of(e.progress).foreach(learn(e.progress, _))
    case e: QueryTerminatedEvent =>
      startMs.remove(e.runId)
      targets.forget(e.runId)
      thread.execute(() => wanted.remove(e.runId): Unit)
    case _ =>
  }

  private def learn(progress: StreamingQueryProgress, report: Row): Unit = {
    val run = progress.runId
    val start = Try(Instant.parse(progress.timestamp).toEpochMilli).getOrElse(0L)
    val before = startMs.put(run, start)
    for (target <- targets.of(run); b <- before if start > b) {
      val executors = LiveExecutors.of(context)
      if (executors.size == 0) targets.tell(run, "the number of executors is fixed: Spark runs in local mode")
      else {
        // Executors may still be starting when the first batch ends.
        maxSeen = math.max(maxSeen, executors.size)
        val work =
          ReportRows.regions(report).flatMap(r => Option(r.getAs[Any]("busyMs"))).map(_.asInstanceOf[Long])
        val demand = Demand(
          run,
          progress.batchId,
          executors.size,
          progress.numInputRows,
          progress.durationMs.get("triggerExecution"),
          start - b,
          work.sum,
          executors.cores.sum,
          target.targetMs,
          executors.cores.max,
          minExecutors,
          math.max(minExecutors, if (maxExecutors > 0) maxExecutors else maxSeen)
        )
        planner.scale(demand)(answer => thread.execute(() => decide(run, target.acts, demand, answer)))
      }
    }
  }

  private def decide(run: UUID, acts: Boolean, demand: Demand, answer: Either[String, Scaled]): Unit = answer match {
    case Left(why) => targets.tell(run, s"the number of executors does not change: $why")
    case Right(scaled) if !acts => targets.tell(run, s"observe: ${scaled.reason}")
    case Right(scaled) if context.getConf.getBoolean("spark.dynamicAllocation.enabled", false) =>
      targets.tell(run, s"spark.dynamicAllocation.enabled decides: ${scaled.reason}")
    case Right(scaled) =>
      targets.tell(run, scaled.reason)
      wanted(run) = scaled.executors
      wanted.filterInPlace((other, _) => targets.of(other).exists(_.acts))
      // The demand of each query was measured while the others were running, so the largest demand is enough for all.
      for (client <- spark; total <- wanted.values.maxOption) follow(client, total)
  }

  private def follow(spark: ExecutorAllocationClient, total: Int): Unit =
    try {
      val active = spark.getExecutorIds().filter(spark.isExecutorActive)
      if (total > active.size && total != requested) {
        requested = total
        logInfo(s"Penstock requests $total executors; there are ${active.size}")
        if (!context.requestTotalExecutors(total, 0, Map.empty)) logWarning("Penstock: Spark refuses the request")
      } else if (total < active.size) {
        requested = total
        // Release the newest executors first.
        val surplus = active.sortBy(id => (id.length, id)).takeRight(active.size - total)
        logInfo(s"Penstock needs only $total executors and releases ${surplus.mkString(", ")}")
        context.killExecutors(surplus): Unit
      } else if (total == active.size) requested = 0
    } catch { case NonFatal(e) => logWarning(s"Penstock could not change the number of executors: $e") }

  override def held: Map[String, Long] = Map("threads" -> thread.size.toLong)

  /** Decides nothing any more. */
  override def close(): Unit = {
    context.removeSparkListener(this)
    thread.close()
  }
}
