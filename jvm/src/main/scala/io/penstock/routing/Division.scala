package io.penstock.routing

/** Divides things of different size into parts: the largest first, each to the part that has least (LPT, Graham 1969). */
object Division {

  /**
   * @param sizes
   *   of the things
   * @param parts
   *   at least 1
   * @return
   *   part of each thing, from 0
   */
  def of(sizes: Array[Long], parts: Int): Array[Int] = {
    val sums = new Array[Long](parts)
    val counts = new Array[Int](parts)
    val out = new Array[Int](sizes.length)
    sizes.indices.sortBy(i => (-sizes(i), i)).foreach { i =>
      // Things without a size are spread as well.
      val part = (0 until parts).minBy(p => (sums(p), counts(p)))
      sums(part) += sizes(i)
      counts(part) += 1
      out(i) = part
    }
    out
  }
}
