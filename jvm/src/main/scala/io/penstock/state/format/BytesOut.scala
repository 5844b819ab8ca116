package io.penstock.state.format

/** Receives a sequence of bytes. */
trait BytesOut {

  /** Consumes `count` bytes of an array from index `from`. The array is not read after this call. */
  def put(bytes: Array[Byte], from: Int, count: Int): Unit
}
