package io.penstock.benchmarks.source

/**
 * How many rows a batch has: some batches fill the state, the others change it.
 *
 * @param firstBatches
 *   how many batches there are of `firstRows` before those of `rows`
 */
final case class BatchSizes(firstBatches: Long, firstRows: Long, rows: Long) {

  /** Rows of so many batches, from the first on. */
  def ofBatches(n: Long): Long =
    math.min(n, firstBatches) * firstRows + math.max(0L, n - firstBatches) * rows
}
