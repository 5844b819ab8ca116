package io.penstock.state.engine

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.unsafe.Platform

/** Location of the bytes of a key: in a row's memory or in an array. One instance is reused for many keys. */
final class KeyBytes {
  var base: AnyRef = _
  var offset: Long = 0L
  var length: Int = 0
  private var hashed = false
  private var knownHash = 0

  def set(base: AnyRef, offset: Long, length: Int): KeyBytes = {
    this.base = base
    this.offset = offset
    this.length = length
    hashed = false
    this
  }

  /** Sets the hash of the key, which the caller knows already. */
  private[engine] def hashedAs(hash: Int): KeyBytes = {
    knownHash = hash
    hashed = true
    this
  }

  def set(bytes: Array[Byte]): KeyBytes = set(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)

  /**
   * Hash of the key in a hash index. It is unrelated to the shard of the key. It is computed once per key, because a
   * write looks up the key in the changes of the attempt and in the committed content.
   */
  def hash: Int = {
    if (!hashed) {
      val h = XXH64.hashUnsafeBytes(base, offset, length, KeyBytes.Seed)
      knownHash = (h ^ (h >>> 32)).toInt
      hashed = true
    }
    knownHash
  }
}

object KeyBytes {
  private val Seed = 0x3c074a61L

  def sameBytes(a: AnyRef, aOffset: Long, b: AnyRef, bOffset: Long, length: Int): Boolean = {
    var i = 0
    while (i + 8 <= length) {
      if (Platform.getLong(a, aOffset + i) != Platform.getLong(b, bOffset + i)) return false
      i += 8
    }
    while (i < length) {
      if (Platform.getByte(a, aOffset + i) != Platform.getByte(b, bOffset + i)) return false
      i += 1
    }
    true
  }

  /** Compares the keys of two records. */
  def compare(a: Records, aRef: Int, b: Records, bRef: Int): Int =
    compare(a.page(aRef), a.keyAt(aRef), a.keyLength(aRef), b.page(bRef), b.keyAt(bRef), b.keyLength(bRef))

  /** Unsigned lexicographic order, as Spark's order-preserving key encoders require it. */
  def compare(a: AnyRef, aOffset: Long, aLength: Int, b: AnyRef, bOffset: Long, bLength: Int): Int = {
    val n = math.min(aLength, bLength)
    var i = 0
    while (i + 8 <= n) {
      val x = Platform.getLong(a, aOffset + i)
      val y = Platform.getLong(b, bOffset + i)
      if (x != y) return java.lang.Long.compareUnsigned(java.lang.Long.reverseBytes(x), java.lang.Long.reverseBytes(y))
      i += 8
    }
    while (i < n) {
      val c = (Platform.getByte(a, aOffset + i) & 0xff) - (Platform.getByte(b, bOffset + i) & 0xff)
      if (c != 0) return c
      i += 1
    }
    aLength - bLength
  }
}
