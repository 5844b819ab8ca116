package io.penstock.state.format

import org.apache.spark.unsafe.Platform

object Bytes {

  /** Longest copy, in bytes, for which a loop is faster than a call into the runtime. */
  private val Short = 64

  /** Copies between regions that do not overlap, at offsets of Spark's `Platform`. Most keys and values are short. */
  def copy(from: AnyRef, fromAt: Long, to: AnyRef, toAt: Long, count: Int): Unit =
    if (count > Short) Platform.copyMemory(from, fromAt, to, toAt, count)
    else {
      var i = 0
      while (i + 8 <= count) {
        Platform.putLong(to, toAt + i, Platform.getLong(from, fromAt + i))
        i += 8
      }
      while (i < count) {
        Platform.putByte(to, toAt + i, Platform.getByte(from, fromAt + i))
        i += 1
      }
    }
}
