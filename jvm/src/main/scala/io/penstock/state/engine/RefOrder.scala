package io.penstock.state.engine

/** Records in the order in which they lie in memory. */
private[engine] object RefOrder {

  /**
   * Sorts by reference, in linear time: references are places in memory, so that a bit for each place says how many are
   * before it.
   *
   * @param hashedRefs
   *   see [[KeyIndex.hashedRefs]]; each reference is there once
   * @return
   *   the same elements, perhaps in the same array
   */
  def sorted(hashedRefs: Array[Long]): Array[Long] = {
    var largest = 0
    var ascend = true
    var i = 0
    while (i < hashedRefs.length) {
      val ref = hashedRefs(i).toInt
      if (ref >= largest) largest = ref else ascend = false
      i += 1
    }
    if (ascend) hashedRefs else sorted(hashedRefs, new Array[Long]((largest >>> 6) + 1))
  }

  private def sorted(hashedRefs: Array[Long], places: Array[Long]): Array[Long] = {
    var i = 0
    while (i < hashedRefs.length) {
      val ref = hashedRefs(i).toInt
      places(ref >>> 6) |= 1L << ref
      i += 1
    }
    val before = new Array[Int](places.length)
    i = 1
    while (i < places.length) {
      before(i) = before(i - 1) + java.lang.Long.bitCount(places(i - 1))
      i += 1
    }
    val out = new Array[Long](hashedRefs.length)
    i = 0
    while (i < hashedRefs.length) {
      val ref = hashedRefs(i).toInt
      val word = ref >>> 6
      out(before(word) + java.lang.Long.bitCount(places(word) & ((1L << ref) - 1L))) = hashedRefs(i)
      i += 1
    }
    out
  }
}
