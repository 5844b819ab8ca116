package org.apache.spark.sql.penstock.routing

import org.apache.spark.internal.Logging
import org.apache.spark.sql.streaming.StreamingQuery

import io.penstock.conf.QuerySettings
import io.penstock.errors.PenstockException

/** Options that are set for queries while they run. They are gone with the run: a query that starts again has its own. */
object RunTimeSettings extends Logging {

  /**
   * Sets an option of a query that runs. The next batch that is planned uses it.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_NOT_AT_RUN_TIME; PENSTOCK_NOT_RUNNING where the query
   *   has ended, or its session does not have Penstock
   */
  def update(query: StreamingQuery, option: String, text: String): Unit = {
    def notSet(why: String) = new PenstockException("PENSTOCK_NOT_RUNNING", s"$option=$text was not set: $why")
    if (!query.isActive)
      throw notSet(s"the run ${query.runId} has ended. Start the query with this option")
    QuerySettings.default.updated(option, text)
    SessionRouting.ofQuery(query).getOrElse(
      throw notSet(s"the session of run ${query.runId} does not have Penstock. Start the application with its plugin")
    ).set(option, text)
    logInfo(s"Penstock: run ${query.runId} uses $option=$text from its next batch on")
  }
}
