package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

/**
 * Sorts records by their position in memory in linear time. References are positions in memory, so that a bitmap of the
 * positions gives the rank of each record.
 *
 * @param positions
 *   One bit for each position in memory, set where a record starts
 * @param bitsBefore
 *   Number of bits that are set before each word of `positions`
 */
final private[engine] class RefOrder private (hashedRefs: Array[Long], positions: Array[Long], bitsBefore: Array[Int]) {

  /** References, ascending. */
  def refs: Array[Int] = {
    val out = new Array[Int](hashedRefs.length)
    var n = 0
    var word = 0
    while (word < positions.length) {
      var left = positions(word)
      while (left != 0L) {
        out(n) = (word << 6) | java.lang.Long.numberOfTrailingZeros(left)
        left &= left - 1L
        n += 1
      }
      word += 1
    }
    out
  }

  /** Hash of each record's key, an int each, in the order of the references. */
  def hashes: Array[Byte] = {
    val out = new Array[Byte](4 * hashedRefs.length)
    var i = 0
    while (i < hashedRefs.length) {
      val ref = hashedRefs(i).toInt
      val word = ref >>> 6
      val rank = bitsBefore(word) + java.lang.Long.bitCount(positions(word) & ((1L << ref) - 1L))
      Platform.putInt(out, Platform.BYTE_ARRAY_OFFSET + 4L * rank, (hashedRefs(i) >>> 32).toInt)
      i += 1
    }
    out
  }
}

private[engine] object RefOrder {

  /**
   * @param hashedRefs
   *   Records as in [[KeyIndex.hashedRefs]]. No reference occurs twice
   */
  def of(hashedRefs: Array[Long]): RefOrder = {
    val positions = new Array[Long]((largest(hashedRefs) >>> 6) + 1)
    mark(hashedRefs, positions)
    new RefOrder(hashedRefs, positions, countBitsBefore(positions))
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

  private def mark(hashedRefs: Array[Long], positions: Array[Long]): Unit = {
    var i = 0
    while (i < hashedRefs.length) {
      val ref = hashedRefs(i).toInt
      positions(ref >>> 6) |= 1L << ref
      i += 1
    }
  }

  private def countBitsBefore(positions: Array[Long]): Array[Int] = {
    val bitsBefore = new Array[Int](positions.length)
    var sum = 0
    var i = 0
    while (i < positions.length) {
      bitsBefore(i) = sum
      sum += java.lang.Long.bitCount(positions(i))
      i += 1
    }
    bitsBefore
  }
}
