package io.penstock.benchmarks

import org.apache.spark.sql.Column
import org.apache.spark.sql.functions.{col, lit, pmod}

import io.penstock.benchmarks.source.BatchSizes

/** State that is there before anything is measured: every key once. */
object LoadedKeys {
  private val Batches = 20

  /** A prime that divides no number of keys that is used here: so many numbers in a row are as many keys, far apart. */
  val Stride = 7368787L

  /** The sides that take part where all of them have a partition per core. */
  def sides(shards: Int, cores: Int, args: Arguments): Seq[Side] =
    (Side.penstock("penstock", shards, cores) +: Side.stock(cores)).filter(args.wants)

  /** Batches that make the keys, then such as change `rows` of them. */
  def sizes(keys: Int, rows: Int): BatchSizes = BatchSizes(Batches.toLong, (keys / Batches).toLong, rows.toLong)

  /** The key of a source's row, from 0. */
  def key(keys: Int): Column = pmod(col("value") * lit(Stride), lit(keys.toLong))

  /**
   * Runs the batches that make the keys.
   *
   * @param more
   *   batches that change some
   * @return
   *   the batch that is next
   */
  def load(contender: Contender, watch: StageWatch, more: Int = 0): Int = {
    (0 until Batches + more).foreach(_ => contender.step(watch))
    Batches + more
  }
}
