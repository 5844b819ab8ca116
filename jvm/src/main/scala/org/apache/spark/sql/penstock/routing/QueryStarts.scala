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
 * Prepares each query of a session when it starts:
 *   - Errors in the session's settings fail the start. Errors in the query's own options end the query before its start
 *     returns.
 *   - The newest batch in the query's offset log is recorded, so that it is known whether the first batch of the run is
 *     new.
 *   - If the application cannot set the state store provider and the number of state partitions, they are set for the
 *     query. An existing checkpoint overrides them.
 *
 * Spark calls the listener in the query's own thread and waits for it. This happens before Spark reads the settings
 * that the checkpoint fixes, and before it writes a batch to the query's offset log.
 */
final private[routing] class QueryStarts(session: SparkSession, routing: SessionRouting)
    extends StreamingQueryListener
    with Logging {

  /** Number of queries whose start event is still expected. */
  private var expected = 0

  /**
   * Called for each analyzed plan. Spark analyzes the plan of a streaming write just before the query starts, in the
   * caller's thread.
   */
  def expect(plan: LogicalPlan): Unit = plan match {
    case _: WriteToStream =>
      routing.checkSession()
      listen()
    case _ =>
  }

  /** Registers the listener only while a start is expected, because listeners are visible to the application. */
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
          QuerySettings.unprefixed(options).foreach(warnUnread(query, _))
        }
        if (RealTimeMode.refusesOtherProviders) prepare(query.streamingQuery)
      } catch { case e: PenstockException => StartedQuery.fail(query.streamingQuery, e) }
    case _ =>
  }

  private def warnUnread(query: StreamingQueryWrapper, option: String): Unit = logWarning(
    s"Penstock ignores the option $option of query ${query.id}: it is passed to the sink only. To set the Penstock " +
      s"setting of that name, use ${Setting.OptionPrefix}$option."
  )

  private def remember(query: StreamingQueryWrapper): Unit =
    try
      SessionRoutings.ofQuery(query).foreach { routing =>
        routing.startsAfter(query.streamingQuery.offsetLog.getLatestBatchId().getOrElse(-1L))
      }
    catch {
      case NonFatal(e) =>
        logWarning(
          s"Penstock cannot read the offset log of run ${query.runId}. The first batch keeps the number of tasks " +
            "of the batch before.",
          e
        )
    }

  private def prepare(query: StreamExecution): Unit = query.trigger match {
    // Spark chooses RocksDB for real-time queries. Continuous queries have no state.
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
