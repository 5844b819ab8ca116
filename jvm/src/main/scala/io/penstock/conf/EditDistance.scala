package io.penstock.conf

/** Levenshtein distance: number of characters to insert, delete or replace to turn one text into the other. */
private[conf] object EditDistance {
  def apply(a: String, b: String): Int = {
    val first = (0 to b.length).toArray
    a.foldLeft(first) { (above, c) =>
      val row = new Array[Int](b.length + 1)
      row(0) = above(0) + 1
      for (j <- 1 to b.length) {
        val replace = above(j - 1) + (if (b(j - 1) == c) 0 else 1)
        row(j) = math.min(replace, math.min(above(j), row(j - 1)) + 1)
      }
      row
    }(b.length)
  }
}
