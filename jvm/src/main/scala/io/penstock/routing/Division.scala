package io.penstock.routing

/** Divides items into parts: the largest item first, each to the part with the smallest sum (LPT, Graham 1969). */
object Division {

  /**
   * @param sizes
   *   size of each item
   * @param parts
   *   number of parts, at least 1
   * @return
   *   part of each item, from 0
   */
  def of(sizes: Array[Long], parts: Int): Array[Int] = {
    val sums = new Array[Long](parts)
    val counts = new Array[Int](parts)
    val out = new Array[Int](sizes.length)
    sizes.indices.sortBy(i => (-sizes(i), i)).foreach { i =>
      // Items of size 0 are spread evenly by count.
      val part = (0 until parts).minBy(p => (sums(p), counts(p)))
      sums(part) += sizes(i)
      counts(part) += 1
      out(i) = part
    }
    out
  }
}
