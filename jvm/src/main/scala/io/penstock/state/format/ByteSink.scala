package io.penstock.state.format

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.spark.unsafe.Platform

/** A growing byte array with the primitives of the file formats: little-endian numbers, unsigned LEB128 varints. */
final class ByteSink(initialBytes: Int = 1024) extends BytesOut {
  private var bytes = new Array[Byte](initialBytes)
  private var length = 0

  def size: Int = length

  /** The buffer with the written bytes. It is shared with this sink until the next write. */
  def array: Array[Byte] = bytes

  /** Exactly the written bytes. The caller must not change the array. */
  def toByteArray: Array[Byte] = if (length == bytes.length) bytes else java.util.Arrays.copyOf(bytes, length)

  def clear(): Unit = length = 0

  /** Discards all bytes after the first `size` bytes. `size` must not exceed the current size. */
  def truncate(size: Int): Unit = length = size

  def putByte(value: Int): Unit = {
    ensure(1)
    bytes(length) = value.toByte
    length += 1
  }

  def putInt(value: Int): Unit = {
    ensure(4)
    Platform.putInt(bytes, address, value)
    length += 4
  }

  def putLong(value: Long): Unit = {
    ensure(8)
    Platform.putLong(bytes, address, value)
    length += 8
  }

  def putUuid(value: UUID): Unit = {
    putLong(value.getMostSignificantBits)
    putLong(value.getLeastSignificantBits)
  }

  def putVarint(value: Long): Unit = {
    ensure(ByteSink.LongestVarint)
    var v = value
    while ((v & ~0x7fL) != 0L) {
      bytes(length) = ((v & 0x7f) | 0x80).toByte
      length += 1
      v >>>= 7
    }
    bytes(length) = v.toByte
    length += 1
  }

  def putString(value: String): Unit = {
    val utf8 = value.getBytes(UTF_8)
    putVarint(utf8.length)
    putBytes(utf8, Platform.BYTE_ARRAY_OFFSET, utf8.length)
  }

  /** Copies raw bytes; `offset` is an offset for Spark's `Platform`. */
  def putBytes(base: AnyRef, offset: Long, count: Int): Unit = {
    ensure(count)
    Bytes.copy(base, offset, bytes, address, count)
    length += count
  }

  override def put(bytes: Array[Byte], from: Int, count: Int): Unit =
    putBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + from, count)

  def putBytes(value: Array[Byte]): Unit = putBytes(value, Platform.BYTE_ARRAY_OFFSET, value.length)

  private def address: Long = Platform.BYTE_ARRAY_OFFSET.toLong + length

  private def ensure(more: Int): Unit = {
    val needed = length.toLong + more
    if (needed > bytes.length) {
      if (needed > FileFormat.MaxBytes) {
        throw new ByteSink.Full(needed)
      }
      bytes = java.util.Arrays.copyOf(bytes, math.max(needed, math.min(bytes.length * 2L, FileFormat.MaxBytes)).toInt)
    }
  }
}

object ByteSink {

  /** The written bytes would exceed the size of a JVM array. */
  final class Full(bytes: Long)
      extends RuntimeException(s"a buffer of $bytes bytes exceeds the limit of ${FileFormat.MaxBytes} bytes")

  private val LongestVarint = 10
}
