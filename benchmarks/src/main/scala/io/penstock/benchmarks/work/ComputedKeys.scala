package io.penstock.benchmarks.work

import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders}

/** The query that computes for each row, the same for all, and counts the rows of each key. */
object ComputedKeys {
  private val longs: Encoder[Long] = Encoders.scalaLong

  /** Some 20 microseconds of a core. */
  private val Rounds = 20000

  /**
   * @param numbers
   *   of rows
   * @param keys
   *   of the rows
   * @param run
   *   that placement is noted for
   * @param shards
   *   that it is noted of
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
          // What was computed is used, or the compiler leaves it out.
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
