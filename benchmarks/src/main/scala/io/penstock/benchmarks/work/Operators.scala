package io.penstock.benchmarks.work

import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.{DataFrame, Dataset, Encoder, Encoders}

/**
 * A stateful operator over the numbers of a gated source.
 *
 * @param rocksDbOnly
 *   whether plain Spark can run it only with the RocksDB provider
 */
sealed abstract class Operator(val name: String, val mode: OutputMode, val rocksDbOnly: Boolean = false) {

  /**
   * Creates the query.
   *
   * @param numbers
   *   source of row numbers
   * @param rows
   *   number of rows in each batch
   * @param keys
   *   number of distinct keys
   */
  def over(numbers: DataFrame, rows: Int, keys: Int): DataFrame
}

/**
 * The operators that the benchmarks compare. Operators with event time have ten seconds of it in each batch and a
 * watermark delay of ten seconds. State is added and evicted in every batch, and its size stays bounded.
 */
object Operators {
  private val seconds = 10L

  /** Rows with a random key `k`, their batch number `batch`, and an event time `ts`, which is the same for a batch. */
  private def events(numbers: DataFrame, rows: Int, keys: Int): DataFrame = numbers
    .withColumn("k", pmod(xxhash64(col("value")), lit(keys.toLong)))
    .withColumn("batch", floor(col("value") / rows.toLong))
    .withColumn("ts", timestamp_seconds(col("batch") * seconds))

  /** Rows with a key `k` that counts up cyclically, so that a batch of at least `keys` rows has every key. */
  private def cyclic(numbers: DataFrame, keys: Int): Dataset[Long] =
    numbers.select(pmod(col("value"), lit(keys.toLong)).as("k")).as[Long](longs)

  private val longs: Encoder[Long] = Encoders.scalaLong
  private val counts: Encoder[(Long, Long)] = Encoders.tuple(longs, longs)

  case object Aggregation extends Operator("aggregation", OutputMode.Update()) {
    override def over(numbers: DataFrame, rows: Int, keys: Int): DataFrame =
      cyclic(numbers, keys).toDF("k").groupBy("k").count()
  }

  case object Dedup extends Operator("dedup", OutputMode.Append()) {
    override def over(numbers: DataFrame, rows: Int, keys: Int): DataFrame =
      events(numbers, rows, keys).withWatermark("ts", s"$seconds seconds").dropDuplicates("k", "ts")
  }

  case object Session extends Operator("session", OutputMode.Append()) {
    override def over(numbers: DataFrame, rows: Int, keys: Int): DataFrame =
      events(numbers, rows, keys)
        .withColumn("ts", timestamp_seconds(col("batch") * seconds + pmod(col("value"), lit(seconds))))
        .withWatermark("ts", s"$seconds seconds")
        .groupBy(session_window(col("ts"), "2 seconds"), col("k"))
        .count()
  }

  /** Joins even numbers with odd numbers of the same batch or of the next. */
  case object Join extends Operator("join", OutputMode.Append()) {
    override def over(numbers: DataFrame, rows: Int, keys: Int): DataFrame = {
      def side(remainder: Int, k: String, ts: String) = events(numbers, rows, keys)
        .where(pmod(col("value"), lit(2)) === remainder)
        .select(col("k").as(k), col("ts").as(ts), col("value").as(s"value$remainder"))
        .withWatermark(ts, s"$seconds seconds")
      side(0, "k0", "ts0").join(
        side(1, "k1", "ts1"),
        col("k0") === col("k1") && col("ts1") >= col("ts0") && col(
          "ts1"
        ) <= col("ts0") + expr(s"INTERVAL $seconds SECONDS")
      )
    }
  }

  case object FlatMapGroups extends Operator("flatMapGroupsWithState", OutputMode.Update()) {
    override def over(numbers: DataFrame, rows: Int, keys: Int): DataFrame =
      cyclic(numbers, keys)
        .groupByKey((k: Long) => k)(longs)
        .flatMapGroupsWithState[Long, (Long, Long)](OutputMode.Update(), GroupStateTimeout.NoTimeout())(count)(
          longs,
          counts
        )
        .toDF("k", "count")

    private val count = (k: Long, rows: Iterator[Long], state: GroupState[Long]) => {
      val n = state.getOption.getOrElse(0L) + rows.size
      state.update(n)
      Iterator((k, n))
    }
  }

  case object Transform extends Operator("transformWithState", OutputMode.Update(), rocksDbOnly = true) {
    override def over(numbers: DataFrame, rows: Int, keys: Int): DataFrame =
      cyclic(numbers, keys)
        .groupByKey((k: Long) => k)(longs)
        .transformWithState(new Counter, TimeMode.None(), OutputMode.Update())(counts)
        .toDF("k", "count")
  }

  /** Counts the rows of each key. */
  private class Counter extends StatefulProcessor[Long, Long, (Long, Long)] {
    @transient private var seen: ValueState[Long] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      seen = getHandle.getValueState[Long]("count", longs, TTLConfig.NONE)

    override def handleInputRows(k: Long, rows: Iterator[Long], timers: TimerValues): Iterator[(Long, Long)] = {
      val n = (if (seen.exists()) seen.get() else 0L) + rows.size
      seen.update(n)
      Iterator((k, n))
    }
  }

  val all: Seq[Operator] = Seq(Aggregation, Dedup, Session, Join, FlatMapGroups, Transform)

  /**
   * Returns the operator with a name.
   *
   * @throws IllegalArgumentException
   *   if there is no such operator
   */
  def named(name: String): Operator = all
    .find(_.name == name)
    .getOrElse(throw new IllegalArgumentException(s"--op is $name; allowed: ${all.map(_.name).mkString(", ")}"))
}
