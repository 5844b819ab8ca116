package org.apache.spark.sql.penstock.routing

import org.apache.spark.internal.Logging
import org.apache.spark.sql.streaming.StreamingQuery

import io.penstock.conf.QuerySettings
import io.penstock.errors.PenstockException

/**
 * Sets options of queries while they run. The options are valid until the run ends; a restarted query has its own
 * options.
 */
object RunTimeSettings extends Logging {

  /**
   * Sets an option of a running query. The next batch that is planned uses it.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_NOT_AT_RUN_TIME; PENSTOCK_NOT_RUNNING if the query
   *   has ended or its session does not use Penstock
   */
  def update(query: StreamingQuery, option: String, text: String): Unit = {
    def notSet(why: String) = new PenstockException("PENSTOCK_NOT_RUNNING", s"$option=$text was not set: $why")
    if (!query.isActive)
      throw notSet(s"the run ${query.runId} has ended. Start the query with this option")
    QuerySettings.default.updated(option, text)
    SessionRoutings.ofQuery(query).getOrElse(
      throw notSet(s"the session of run ${query.runId} does not use Penstock. Start the application with its plugin")
    ).set(option, text)
    logInfo(s"Penstock: run ${query.runId} uses $option=$text from the next planned batch on")
  }
}
