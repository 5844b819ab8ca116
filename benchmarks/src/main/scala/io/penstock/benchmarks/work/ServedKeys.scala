package io.penstock.benchmarks.work

import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders}

/** A query that waits for the cost of each row, and counts the rows of each key. */
object ServedKeys {
  private val longs: Encoder[Long] = Encoders.scalaLong

  /**
   * Creates the query.
   *
   * @param numbers
   *   source of row numbers
   * @param keys
   *   keys of the rows
   * @param cost
   *   cost of the rows
   * @param run
   *   name under which [[Served]] and [[WhoRan]] record work and tasks
   * @param shards
   *   number of shards
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
