package io.penstock.state.format

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.spark.unsafe.Platform

/**
 * Reads what [[ByteSink]] wrote. Never reads outside `[start, end)`: damaged input fails with a [[MalformedData]] that
 * names the position.
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
    val at = consumed
    var shift = 0
    var v = 0L
    while (true) {
      val b = getByte()
      v |= (b & 0x7fL) << shift
      if ((b & 0x80) == 0) {
        if (b == 0 && shift > 0) throw new MalformedData("a varint is not in its shortest form", at)
        return v
      }
      shift += 7
      if (shift > ByteSource.LastShift) throw new MalformedData("a varint has more than 63 bits", at)
    }
    v
  }

  /** A varint between two bounds, both inclusive. `name` says in errors what the number is. */
  def getNumber(name: String, least: Long, most: Long): Long = {
    val at = consumed
    val v = getVarint()
    if (v < least || v > most) throw new MalformedData(s"$name is $v, but must be between $least and $most", at)
    v
  }

  /** A varint from 0 to `limit`, both inclusive. */
  def getCount(name: String, limit: Long = Int.MaxValue): Int = getNumber(name, 0L, limit).toInt

  def getString(): String = {
    val at = consumed
    val n = getCount("length of a name", remaining)
    val from = skip(n)
    val s = new String(array, from, n, UTF_8)
    // Invalid UTF-8 must fail, or two damaged names could become equal. Only the slower decoder can tell invalid bytes
    // from a valid replacement character.
    if (s.indexOf(ByteSource.Replacement) >= 0) {
      try UTF_8.newDecoder().decode(ByteBuffer.wrap(array, from, n))
      catch { case _: CharacterCodingException => throw new MalformedData("a name is not valid UTF-8", at) }
    }
    s
  }

  /** Checks that no bytes are left. */
  def expectEnd(last: String): Unit =
    if (remaining != 0) throw new MalformedData(s"$remaining unexpected bytes after the last $last", consumed)

  /** Skips `count` bytes and returns the index in `array` where they begin. */
  def skip(count: Int): Int = {
    need(count)
    val at = position
    position += count
    at
  }

  private def address: Long = Platform.BYTE_ARRAY_OFFSET.toLong + position

  private def need(count: Int): Unit =
    if (count < 0 || count > end - position) {
      throw new MalformedData(s"$count bytes are needed, but only ${end - position} are left", consumed)
    }
}

object ByteSource {

  /** Shift of the ninth byte. Nine bytes of seven bits cannot make a negative number. */
  private val LastShift = 56
  private val Replacement = '\ufffd'
}

/**
 * Bytes that do not follow the format. The reader of the file adds the name of the file.
 *
 * @param what
 *   Description of the error
 * @param at
 *   Position of the error, counted from the first byte that was read
 */
final class MalformedData(val what: String, val at: Int) extends RuntimeException(s"$what, at byte $at")
