package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.internal.Logging
import org.apache.spark.sql.streaming.StreamingQuery

import io.penstock.conf.QuerySettings
import io.penstock.errors.PenstockException

/** What was set for queries while they run. It is gone with the run: a query that starts again has its own settings. */
object RunTimeSettings extends Logging {

  /** Options and texts by run, the youngest of an option only. */
  private val set = new java.util.concurrent.ConcurrentHashMap[UUID, Map[String, String]]()

  /**
   * Sets an option of a query that runs. The next batch that is planned uses it.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_NOT_AT_RUN_TIME; PENSTOCK_NOT_RUNNING where the query
   *   has ended
   */
  def update(query: StreamingQuery, option: String, text: String): Unit = {
    if (!query.isActive) {
      throw new PenstockException(
        "PENSTOCK_NOT_RUNNING",
        s"$option=$text was not set: the run ${query.runId} has ended. Start the query with this option"
      )
    }
    QuerySettings.default.updated(option, text)
    forgetEnded(query)
    set.merge(query.runId, Map(option -> text), _ ++ _)
    logInfo(s"Penstock: run ${query.runId} uses $option=$text from its next batch on")
  }

  /** The settings of a run now. */
  private[routing] def of(runId: UUID, startedWith: QuerySettings): QuerySettings =
    Option(set.get(runId)).fold(startedWith)(_.foldLeft(startedWith) { case (s, (option, text)) =>
      s.updated(option, text)
    })

  private def forgetEnded(query: StreamingQuery): Unit = {
    val active = query.sparkSession.streams.active.map(_.runId).toSet
    set.keySet().removeIf(run => run != query.runId && !active(run)): Unit
  }
}
