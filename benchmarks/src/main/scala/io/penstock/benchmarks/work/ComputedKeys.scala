package io.penstock.benchmarks.work

import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders}

/** A query that does the same computation for each row, and counts the rows of each key. */
object ComputedKeys {
  private val longs: Encoder[Long] = Encoders.scalaLong

  /** Number of iterations per row, which take about 20 microseconds. */
  private val Rounds = 20000

  /**
   * Creates the query.
   *
   * @param numbers
   *   source of row numbers
   * @param keys
   *   keys of the rows
   * @param run
   *   name under which [[WhoRan]] records the task of each shard
   * @param shards
   *   number of shards
   */
  def of(numbers: DataFrame, keys: Keys, run: String, shards: Int): DataFrame =
    numbers
      .as[Long](longs)
      .map((row: Long) => keys.key(row))(longs)
      .groupByKey((k: Long) => k)(longs)
      .flatMapGroupsWithState[Long, Long](OutputMode.Update(), GroupStateTimeout.NoTimeout()) {
        (k: Long, rows: Iterator[Long], state: GroupState[Long]) =>
          WhoRan.note(run, k, shards)
          var (n, mixed) = (0L, k)
          rows.foreach { row =>
            n += 1
            mixed = compute(mixed ^ row)
          }
          state.update(state.getOption.getOrElse(0L) + n)
          // The result must be used, because the compiler would otherwise remove the computation.
          if (mixed == 0L) Iterator.empty else Iterator(k)
      }(longs, longs)
      .toDF("k")

  private def compute(from: Long): Long = {
    var x = from | 1L
    var i = 0
    while (i < Rounds) {
      x ^= x << 13
      x ^= x >>> 7
      x ^= x << 17
      i += 1
    }
    x
  }
}
