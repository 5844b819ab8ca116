package org.apache.spark.sql.penstock.benchmarks

import org.apache.spark.sql.penstock.state.ShardExtractor

import io.penstock.sharding.Layout
import io.penstock.state.format.FileFormat

/** The checks of a state store, without the store. */
final class Checks(bytes: Int) {
  private val shardCount = 256
  private val shape = StoreShape.Whole
  private val extractor =
    ShardExtractor.of(shape.kind, Layout(shardCount), "default", shape.keySchema, shape.spec, prefixedMain = false)
  private val own = Array.tabulate(shardCount)(_ => new AnyRef)
  private val key = shape.newKey()
  private val data = Array.tabulate(bytes)(i => (i * 31).toByte)
  private var number = 0L

  /**
   * Finds the shard of the next key and checks that it belongs to the task.
   *
   * @throws IllegalStateException
   *   if it does not
   */
  def shardOfNextKey(): Int = {
    number += 1L
    shape.fill(key, number)
    val shard = extractor.ofKey(key)
    if (own(shard) == null) throw new IllegalStateException(s"shard $shard does not belong to the task")
    shard
  }

  /** Computes a checksum, of different bytes in every call. */
  def checksum(): Int = {
    number += 1L
    data((number % bytes).toInt) = number.toByte
    FileFormat.crc(data, 0, data.length)
  }
}
