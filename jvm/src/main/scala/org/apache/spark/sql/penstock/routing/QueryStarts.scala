package org.apache.spark.sql.penstock.routing

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, StreamingQueryWrapper}
import org.apache.spark.sql.execution.streaming.{ContinuousTrigger, RealTimeTrigger}
import org.apache.spark.sql.penstock.shims.RealTimeMode
import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._

import io.penstock.conf.{ApplicationSetup, QuerySettings, Setting}
import io.penstock.errors.PenstockException

/**
 * What happens when a query of a session starts:
 *   - errors in the session's settings fail its start, those in its own options end it before its start returns;
 *   - which batch is the newest in its offset log is remembered, so that the first batch of the run is known to be new or not;
 *   - where the application cannot carry them, it gets the provider and the number of state partitions. A checkpoint that is
 *     there already has the last word.
 *
 * Spark tells of a start in the query's own thread and goes on when told, before it reads what the query's checkpoint will
 * pin, and before it puts a batch into the query's offset log.
 */
final private[routing] class QueryStarts(session: SparkSession, routing: SessionRouting)
    extends StreamingQueryListener
    with Logging {

  /** Queries that have not told yet that they have started. */
  private var expected = 0

  /** Spark analyzes what a query will write right before it starts it, in the caller's thread. */
  def expect(plan: LogicalPlan): Unit = plan match {
    case _: WriteToStream =>
      routing.checkSession()
      listen()
    case _ =>
  }

  /** Only as long as need be: the application sees who listens. */
  private def listen(): Unit = synchronized {
    expected += 1
    if (expected == 1) session.streams.addListener(this)
  }

  private def listened(): Unit = synchronized {
    expected -= 1
    if (expected == 0) session.streams.removeListener(this)
  }

  override def onQueryStarted(event: QueryStartedEvent): Unit =
    try started(event)
    finally listened()

  private def started(event: QueryStartedEvent): Unit = session.streams.get(event.id) match {
    case query: StreamingQueryWrapper =>
      remember(query)
      try {
        StartedQuery.options(query.streamingQuery).foreach { options =>
          routing.check(options)
          QuerySettings.unprefixed(options).foreach(tellUnread(query, _))
        }
        if (RealTimeMode.refusesOtherProviders) prepare(query.streamingQuery)
      } catch { case e: PenstockException => StartedQuery.fail(query.streamingQuery, e) }
    case _ =>
  }

  private def tellUnread(query: StreamingQueryWrapper, option: String): Unit = logWarning(
    s"Penstock: $option, an option of query ${query.id}, is left to its sink. Where the setting of Penstock is meant, write " +
      s"${Setting.OptionPrefix}$option"
  )

  private def remember(query: StreamingQueryWrapper): Unit =
    try
      SessionRouting.ofQuery(query).foreach { routing =>
        routing.startsAfter(query.streamingQuery.offsetLog.getLatestBatchId().getOrElse(-1L))
      }
    catch {
      case NonFatal(e) =>
        logWarning(
          s"Penstock: the offset log of run ${query.runId} cannot be read. Its first batch has as many tasks as the one before",
          e
        )
    }

  private def prepare(query: StreamExecution): Unit = query.trigger match {
    // Spark chooses RocksDB for the first; the second has no state.
    case _: RealTimeTrigger | _: ContinuousTrigger =>
    case _ =>
      val conf = query.sparkSessionForStream.conf
      ApplicationSetup
        .forQuery(session.sparkContext.getConf.getAll.toMap, conf.getAll)
        .foreach { case (key, value) => conf.set(key, value) }
  }

  override def onQueryProgress(event: QueryProgressEvent): Unit = ()

  override def onQueryTerminated(event: QueryTerminatedEvent): Unit = ()
}
