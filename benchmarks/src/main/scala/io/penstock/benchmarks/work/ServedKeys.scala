package io.penstock.benchmarks.work

import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders}

/** The query that waits for each row's work and counts the rows of each key. */
object ServedKeys {
  private val longs: Encoder[Long] = Encoders.scalaLong

  /**
   * @param numbers
   *   of rows
   * @param keys
   *   of the rows
   * @param run
   *   that work and placement are noted for
   * @param shards
   *   that placement is noted of
   */
  def of(numbers: DataFrame, keys: Keys, cost: RowCost, run: String, shards: Int): DataFrame =
    numbers
      .as[Long](longs)
      .map((row: Long) => keys.key(row))(longs)
      .groupByKey((k: Long) => k)(longs)
      .flatMapGroupsWithState[Long, Long](OutputMode.Update(), GroupStateTimeout.NoTimeout()) {
        (k: Long, rows: Iterator[Long], state: GroupState[Long]) =>
          WhoRan.note(run, k, shards)
          val n = rows.size
          val ns = n * cost.ns(k)
          Served.note(run, ns)
          Service.serve(ns)
          state.update(state.getOption.getOrElse(0L) + n)
          Iterator(k)
      }(longs, longs)
      .toDF("k")
}
