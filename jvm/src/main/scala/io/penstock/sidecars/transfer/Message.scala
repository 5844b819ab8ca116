package io.penstock.sidecars.transfer

/** Receives the parts of an outgoing message. */
trait MessageOut {

  /** Adds the next `count` bytes from an array, starting at `from`. The array can be changed after the call. */
  def put(bytes: Array[Byte], from: Int, count: Int): Unit

  final def put(bytes: Array[Byte]): Unit = put(bytes, 0, bytes.length)
}

/** Reads a message while it arrives. */
trait MessageIn {

  /** Number of bytes that have not been read. */
  def remaining: Int

  /** Waits for the next `count` bytes and copies them into an array, starting at `from`. */
  def read(into: Array[Byte], from: Int, count: Int): Unit

  /** Waits for the next `count` bytes and returns them in a new array. */
  final def take(count: Int): Array[Byte] = {
    require(count >= 0 && count <= remaining, s"cannot take $count bytes, $remaining are left")
    val bytes = new Array[Byte](count)
    read(bytes, 0, count)
    bytes
  }

  final def takeAll(): Array[Byte] = take(remaining)
}

/** A message of known size that can write itself. */
trait Message {
  def bytes: Long
  def writeTo(out: MessageOut): Unit
}

object Message {

  /** A message with these bytes. */
  def of(all: Array[Byte]): Message = new Message {
    override def bytes: Long = all.length.toLong
    override def writeTo(out: MessageOut): Unit = out.put(all)
  }
}
