package io.penstock

import org.apache.spark.sql.penstock.routing.{RunTimePins, RunTimeSettings}
import org.apache.spark.sql.streaming.StreamingQuery

/** What an application may ask of Penstock while its queries run. */
object Penstock {

  /**
   * Sets an option of a query that runs, without a restart: `setOption(query, "tasks", "16")`. The next batch uses it; it is
   * gone with the run.
   *
   * @param name
   *   of a setting that is changeable at run time (docs/configuration.md), with or without `penstock.` or `spark.penstock.`
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_NOT_AT_RUN_TIME, PENSTOCK_NOT_RUNNING
   */
  def setOption(query: StreamingQuery, name: String, value: String): Unit = {
    RunTimeSettings.update(query, conf.Settings.named(name, value).option, value)
  }

  /**
   * Gives a key of a query that runs a shard of its own from the next batch on, whatever the policy chooses:
   * `pin(query, "ORD")`. Keys of several columns have several values. It is gone with the run.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NO_SUCH_KEY, PENSTOCK_CANNOT_PIN, PENSTOCK_NOT_RUNNING
   */
  def pin(query: StreamingQuery, key: Any*): Unit = RunTimePins.order(query, key, pin = true)

  /**
   * Returns a pinned key to its base shard from the next batch on, and keeps it there, whatever the policy chooses. It is gone with the
   * run.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NO_SUCH_KEY, PENSTOCK_CANNOT_PIN, PENSTOCK_NOT_RUNNING
   */
  def unpin(query: StreamingQuery, key: Any*): Unit = RunTimePins.order(query, key, pin = false)
}
