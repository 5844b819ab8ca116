package io.penstock.sidecars.transfer

/** Takes a message while it is sent. */
trait MessageOut {

  /** Takes the next `count` bytes, of an array from `from` on; they are not looked at later. */
  def put(bytes: Array[Byte], from: Int, count: Int): Unit

  final def put(bytes: Array[Byte]): Unit = put(bytes, 0, bytes.length)
}

/** Gives a message while it comes. */
trait MessageIn {

  /** Bytes that have not been taken. */
  def remaining: Int

  /** Puts the next `count` bytes into an array, from `from` on; waits for them. */
  def read(into: Array[Byte], from: Int, count: Int): Unit

  /** The next bytes, in an array of their own; waits for them. */
  final def take(count: Int): Array[Byte] = {
    require(count >= 0 && count <= remaining, s"$count bytes wanted, $remaining are left")
    val bytes = new Array[Byte](count)
    read(bytes, 0, count)
    bytes
  }

  final def takeAll(): Array[Byte] = take(remaining)
}

/** A message of known size that writes itself. */
trait Message {
  def bytes: Long
  def writeTo(out: MessageOut): Unit
}

object Message {

  /** Of bytes that are there. */
  def of(all: Array[Byte]): Message = new Message {
    override def bytes: Long = all.length.toLong
    override def writeTo(out: MessageOut): Unit = out.put(all)
  }
}
