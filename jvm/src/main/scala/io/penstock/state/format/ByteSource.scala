package io.penstock.state.format

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.spark.unsafe.Platform

/**
 * Reads what [[ByteSink]] wrote. Never reads outside `[start, end)`: damaged input ends in a [[MalformedData]] that tells
 * the position, not in foreign bytes.
 */
final class ByteSource(val array: Array[Byte], start: Int, end: Int) {
  private var position = start

  def this(array: Array[Byte]) = this(array, 0, array.length)

  /** Bytes read so far. */
  def consumed: Int = position - start

  def remaining: Int = end - position

  def getByte(): Int = {
    need(1)
    val v = array(position) & 0xff
    position += 1
    v
  }

  def getInt(): Int = {
    need(4)
    val v = Platform.getInt(array, address)
    position += 4
    v
  }

  def getLong(): Long = {
    need(8)
    val v = Platform.getLong(array, address)
    position += 8
    v
  }

  def getUuid(): UUID = new UUID(getLong(), getLong())

  def getVarint(): Long = {
    var shift = 0
    var v = 0L
    while (true) {
      val b = getByte()
      v |= (b & 0x7fL) << shift
      if ((b & 0x80) == 0) return v
      shift += 7
      if (shift > 63) throw new MalformedData(s"a number of more than 64 bits at byte $consumed")
    }
    v
  }

  /** A varint that counts or measures something of at most `limit`. */
  def getCount(what: String, limit: Long = Int.MaxValue): Int = {
    val v = getVarint()
    if (v < 0 || v > limit) throw new MalformedData(s"$what is $v, at most $limit is possible, at byte $consumed")
    v.toInt
  }

  def getString(): String = {
    val n = getCount("length of a name", remaining)
    new String(array, skip(n), n, UTF_8)
  }

  /** Passes `count` bytes and returns the index in `array` where they begin. */
  def skip(count: Int): Int = {
    need(count)
    val at = position
    position += count
    at
  }

  private def address: Long = Platform.BYTE_ARRAY_OFFSET.toLong + position

  private def need(count: Int): Unit =
    if (count < 0 || count > end - position) {
      throw new MalformedData(s"$count bytes wanted at byte $consumed, ${end - position} left")
    }
}

/** Bytes that do not follow the format. The reader of the file adds which file it was. */
final class MalformedData(message: String) extends RuntimeException(message)
