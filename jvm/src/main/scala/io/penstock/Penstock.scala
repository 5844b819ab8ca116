package io.penstock

import org.apache.spark.sql.penstock.routing.{RunTimePins, RunTimeSettings}
import org.apache.spark.sql.streaming.StreamingQuery

/** API for applications to control running queries. */
object Penstock {

  /**
   * Sets an option of a running query without a restart: `setOption(query, "tasks", "16")`. It applies from the next
   * batch until the end of the run.
   *
   * @param name
   *   name of a setting that can be changed at run time (docs/configuration.md), with or without the prefix `penstock.`
   *   or `spark.penstock.`
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_NOT_AT_RUN_TIME, PENSTOCK_NOT_RUNNING
   */
  def setOption(query: StreamingQuery, name: String, value: String): Unit = {
    RunTimeSettings.update(query, conf.Settings.named(name, value).option, value)
  }

  /**
   * Pins a key of a running query to a shard of its own: `pin(query, "ORD")`. This applies from the next batch until
   * the end of the run and takes precedence over the policy.
   *
   * @param key
   *   the values of the key's columns
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NO_SUCH_KEY, PENSTOCK_CANNOT_PIN, PENSTOCK_NOT_RUNNING
   */
  def pin(query: StreamingQuery, key: Any*): Unit = RunTimePins.order(query, key, pin = true)

  /**
   * Returns a pinned key to its base shard and keeps it there. This applies from the next batch until the end of the
   * run and takes precedence over the policy.
   *
   * @param key
   *   the values of the key's columns
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NO_SUCH_KEY, PENSTOCK_CANNOT_PIN, PENSTOCK_NOT_RUNNING
   */
  def unpin(query: StreamingQuery, key: Any*): Unit = RunTimePins.order(query, key, pin = false)
}
