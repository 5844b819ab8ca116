package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

/**
 * Records in the order in which they lie in memory, found in linear time: references are places in memory, so that a bit for
 * each place says how many are before it.
 *
 * @param places
 *   a bit for each place in memory, that of a record's reference set
 * @param before
 *   how many bits are set before each of the words of `places`
 */
final private[engine] class RefOrder private (hashedRefs: Array[Long], places: Array[Long], before: Array[Int]) {

  /** References, ascending. */
  def refs: Array[Int] = {
    val out = new Array[Int](hashedRefs.length)
    var n = 0
    var word = 0
    while (word < places.length) {
      var left = places(word)
      while (left != 0L) {
        out(n) = (word << 6) | java.lang.Long.numberOfTrailingZeros(left)
        left &= left - 1L
        n += 1
      }
      word += 1
    }
    out
  }

  /** The hash of each record's key, an int, in the order of their references. */
  def hashes: Array[Byte] = {
    val out = new Array[Byte](4 * hashedRefs.length)
    var i = 0
    while (i < hashedRefs.length) {
      val ref = hashedRefs(i).toInt
      val word = ref >>> 6
      val place = before(word) + java.lang.Long.bitCount(places(word) & ((1L << ref) - 1L))
      Platform.putInt(out, Platform.BYTE_ARRAY_OFFSET + 4L * place, (hashedRefs(i) >>> 32).toInt)
      i += 1
    }
    out
  }
}

private[engine] object RefOrder {

  /**
   * @param hashedRefs
   *   see [[KeyIndex.hashedRefs]]; each reference is there once
   */
  def of(hashedRefs: Array[Long]): RefOrder = {
    val places = new Array[Long]((largest(hashedRefs) >>> 6) + 1)
    mark(hashedRefs, places)
    new RefOrder(hashedRefs, places, setBefore(places))
  }

  private def largest(hashedRefs: Array[Long]): Int = {
    var most = 0
    var i = 0
    while (i < hashedRefs.length) {
      most = math.max(most, hashedRefs(i).toInt)
      i += 1
    }
    most
  }

  private def mark(hashedRefs: Array[Long], places: Array[Long]): Unit = {
    var i = 0
    while (i < hashedRefs.length) {
      val ref = hashedRefs(i).toInt
      places(ref >>> 6) |= 1L << ref
      i += 1
    }
  }

  private def setBefore(places: Array[Long]): Array[Int] = {
    val before = new Array[Int](places.length)
    var sum = 0
    var i = 0
    while (i < places.length) {
      before(i) = sum
      sum += java.lang.Long.bitCount(places(i))
      i += 1
    }
    before
  }
}
