package io.penstock.state.format

import org.apache.spark.unsafe.Platform

object Bytes {

  /** Above this a call into the runtime pays. */
  private val Short = 64

  /** Copies between memory that does not overlap; addresses as Platform counts. Keys and values are mostly short. */
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
