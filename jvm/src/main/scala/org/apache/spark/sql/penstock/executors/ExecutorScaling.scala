package org.apache.spark.sql.penstock.executors

import java.time.Instant
import java.util.UUID

import scala.collection.mutable
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.routing.RoutingReportExec
import org.apache.spark.sql.streaming.StreamingQueryListener.{QueryProgressEvent, QueryTerminatedEvent}
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.util.ThreadUtils
import org.apache.spark.{ExecutorAllocationClient, SparkContext}

import io.penstock.control.{Demand, Planner, Scaled}

/**
 * Asks Spark for as many executors as the latency that queries want takes, and gives back what it does not take. The driver's
 * planner says how many; without one they stay as they are. An executor that is given back hands its shards over.
 *
 * @param least
 *   executors
 * @param most
 *   executors; 0: as many as there have been at once
 */
final class ExecutorScaling(context: SparkContext, least: Int, most: Int) extends SparkListener with Logging {
  private val thread = ThreadUtils.newDaemonSingleThreadExecutor("penstock-scaling")

  // Of Spark's listener thread alone.
  private val startMs = mutable.Map.empty[UUID, Long]
  private var maxSeen = 0

  // Of this class's thread alone.
  private val wanted = mutable.Map.empty[UUID, Int]
  private var asked = 0

  private def spark: Option[ExecutorAllocationClient] = context.schedulerBackend match {
    case client: ExecutorAllocationClient => Some(client)
    case _ => None
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: QueryProgressEvent => RoutingReportExec.of(e.progress).foreach(learn(e.progress, _))
    case e: QueryTerminatedEvent =>
      startMs.remove(e.runId)
      LatencyTargets.forget(e.runId)
      thread.execute(() => wanted.remove(e.runId): Unit)
    case _ =>
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = thread.shutdownNow(): Unit

  private def learn(progress: StreamingQueryProgress, report: Row): Unit = {
    val run = progress.runId
    val start = Try(Instant.parse(progress.timestamp).toEpochMilli).getOrElse(0L)
    val before = startMs.put(run, start)
    for (target <- LatencyTargets.of(run); b <- before if start > b) {
      val executors = LiveExecutors.of(context)
      if (executors.size == 0) LatencyTargets.tell(run, "no executors to ask for: Spark runs in local mode")
      else {
        // They may still be on their way when the first batch is over.
        maxSeen = math.max(maxSeen, executors.size)
        val work =
          RoutingReportExec.regions(report).flatMap(r => Option(r.getAs[Any]("busyMs"))).map(_.asInstanceOf[Long])
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
          least,
          math.max(least, if (most > 0) most else maxSeen)
        )
        Planner.current.scale(demand)(answer => thread.execute(() => decide(run, target.acts, demand, answer)))
      }
    }
  }

  private def decide(run: UUID, acts: Boolean, demand: Demand, answer: Either[String, Scaled]): Unit = answer match {
    case Left(why) => LatencyTargets.tell(run, s"executors stay as they are: $why")
    case Right(scaled) if !acts => LatencyTargets.tell(run, s"observe: ${scaled.reason}")
    case Right(scaled) if context.getConf.getBoolean("spark.dynamicAllocation.enabled", false) =>
      LatencyTargets.tell(run, s"spark.dynamicAllocation.enabled decides: ${scaled.reason}")
    case Right(scaled) =>
      LatencyTargets.tell(run, scaled.reason)
      wanted(run) = scaled.executors
      wanted.filterInPlace((other, _) => LatencyTargets.of(other).exists(_.acts))
      // What each needs was measured beside the others.
      for (client <- spark; total <- wanted.values.maxOption) follow(client, total)
  }

  private def follow(spark: ExecutorAllocationClient, total: Int): Unit =
    try {
      val active = spark.getExecutorIds().filter(spark.isExecutorActive)
      if (total > active.size && total != asked) {
        asked = total
        logInfo(s"Penstock: $total executors are asked for, ${active.size} there are")
        if (!context.requestTotalExecutors(total, 0, Map.empty)) logWarning("Penstock: Spark gives no other executors")
      } else if (total < active.size) {
        asked = total
        // The youngest have been of use for the shortest time.
        val surplus = active.sortBy(id => (id.length, id)).takeRight(active.size - total)
        logInfo(s"Penstock: $total executors are enough, given back: ${surplus.mkString(", ")}")
        context.killExecutors(surplus): Unit
      } else if (total == active.size) asked = 0
    } catch { case NonFatal(e) => logWarning(s"Penstock: executors stay as they are: $e") }
}
