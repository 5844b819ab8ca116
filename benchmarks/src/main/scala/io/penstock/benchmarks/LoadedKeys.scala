package io.penstock.benchmarks

import org.apache.spark.sql.Column
import org.apache.spark.sql.functions.{col, lit, pmod}

import io.penstock.benchmarks.source.BatchSizes

/** State that is loaded before the measurement, with every key once. */
object LoadedKeys {
  private val Batches = 20

  /**
   * A prime number that divides no number of keys that is used here. Consecutive row numbers then have different keys,
   * which are far apart.
   */
  val Stride = 7368787L

  /** The sides of a comparison in which plain Spark has a partition per core. */
  def sides(shards: Int, cores: Int, args: Arguments): Seq[Side] =
    (Side.penstock("penstock", shards, cores) +: Side.stock(cores)).filter(args.wants)

  /** Batches that create the keys, followed by batches that change `rows` of them. */
  def sizes(keys: Int, rows: Int): BatchSizes = BatchSizes(Batches.toLong, (keys / Batches).toLong, rows.toLong)

  /** The key of a row of the source, from 0. */
  def key(keys: Int): Column = pmod(col("value") * lit(Stride), lit(keys.toLong))

  /**
   * Runs the batches that create the keys.
   *
   * @param more
   *   number of additional batches, which change keys
   * @return
   *   number of the next batch
   */
  def load(contender: Contender, watch: StageWatch, more: Int = 0): Int = {
    (0 until Batches + more).foreach(_ => contender.step(watch))
    Batches + more
  }
}
