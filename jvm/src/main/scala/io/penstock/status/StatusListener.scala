package io.penstock.status

import java.util.UUID

import scala.collection.immutable.VectorMap

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.streaming.StreamingQueryListener._

import io.penstock.telemetry.ShardsMeasured

/** Keeps the history of the application's queries: up to 100 batches of each run, and the 20 runs that ended last. */
final class StatusListener extends SparkListener {
  @volatile private var known: VectorMap[UUID, RunHistory] = VectorMap.empty

  /** Runs in the order in which they started. */
  def runs: Seq[RunHistory] = known.values.toSeq

  /** Called by Spark from a single thread. */
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: QueryStartedEvent =>
      known = known.updated(e.runId, RunHistory(e.id, e.runId, Option(e.name), e.timestamp))
    case e: QueryProgressEvent if e.progress.durationMs.containsKey("addBatch") =>
      change(e.progress.runId)(_.ran(e.progress, StatusListener.MaxBatches))
    case e: QueryTerminatedEvent =>
      change(e.runId)(_.copy(ended = true, exception = e.exception))
      forget()
    case e: ShardsMeasured => change(e.runId)(_.measured(e))
    case _ =>
  }

  private def change(run: UUID)(by: RunHistory => RunHistory): Unit =
    known.get(run).foreach(before => known = known.updated(run, by(before)))

  private def forget(): Unit =
    known = known.removedAll(known.values.filter(_.ended).map(_.runId).toSeq.dropRight(StatusListener.MaxEnded))
}

object StatusListener {

  /** Number of batches of a run that are kept, the same as Spark keeps. */
  val MaxBatches = 100

  /** Number of ended runs that are kept. */
  val MaxEnded = 20
}
