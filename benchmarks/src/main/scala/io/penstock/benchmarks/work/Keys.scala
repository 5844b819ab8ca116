package io.penstock.benchmarks.work

/** Which key each row has: a pure function of the row's number, so that every side of a comparison gets the same rows. */
trait Keys extends Serializable {

  /** The key of the row with this number. */
  def key(row: Long): Long
}
