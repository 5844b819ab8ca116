package io.penstock.state.format

/** Takes bytes, one after the other. */
trait BytesOut {

  /** Takes `count` bytes of an array from `from` on; they are not looked at later. */
  def put(bytes: Array[Byte], from: Int, count: Int): Unit
}
