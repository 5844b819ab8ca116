package io.penstock.benchmarks.source

/**
 * Numbers of rows of batches: the first batches fill the state, and the others change it.
 *
 * @param firstBatches
 *   number of batches with `firstRows` rows
 * @param firstRows
 *   number of rows of each of the first batches
 * @param rows
 *   number of rows of each further batch
 */
final case class BatchSizes(firstBatches: Long, firstRows: Long, rows: Long) {

  /** Total number of rows of the first `n` batches. */
  def ofBatches(n: Long): Long =
    math.min(n, firstBatches) * firstRows + math.max(0L, n - firstBatches) * rows
}
