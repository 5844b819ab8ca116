package io.penstock.benchmarks.work

/** Keys of rows. A key depends only on the number of its row, so that all sides of a comparison get the same rows. */
trait Keys extends Serializable {

  /** The key of the row with this number. */
  def key(row: Long): Long
}
