package io.penstock.telemetry

/**
 * Learns what a row of each shard costs, from batch to batch. A shard's own mean counts as far as it can be told from
 * noise: it is drawn towards the mean of all shards by the share of its variance that is noise (James and Stein's
 * estimator with DerSimonian and Laird's moments). Where all shards cost the same, the answer is the same number for
 * all, so that noise moves nothing. For one thread.
 */
final class RowCosts(shardCount: Int) {
  private val rows = new Array[Double](shardCount)
  private val busyNs = new Array[Double](shardCount)
  private var noise = 0.0
  private var batches = 0

  /**
   * Learns from one batch.
   *
   * @param batchRows
   *   rows of each shard
   * @param batchBusyNs
   *   time of each shard
   */
  def learn(batchRows: Array[Long], batchBusyNs: Array[Long]): Unit = if (batchBusyNs.exists(_ > 0L)) {
    learnNoise(batchRows, batchBusyNs)
    var s = 0
    while (s < shardCount) {
      if (batchRows(s) > 0L) {
        rows(s) = RowCosts.Keep * rows(s) + batchRows(s)
        busyNs(s) = RowCosts.Keep * busyNs(s) + batchBusyNs(s)
      }
      s += 1
    }
    batches += 1
  }

  /**
   * Variance of a single row's cost, as seen in how far batches are from what was learnt before. By the median: pauses and
   * compilation hit a few shards hard.
   */
  private def learnNoise(batchRows: Array[Long], batchBusyNs: Array[Long]): Unit = {
    val squares = Array.newBuilder[Double]
    var s = 0
    while (s < shardCount) {
      val r = batchRows(s).toDouble
      if (r > 0.0 && rows(s) > 0.0) {
        val innovation = batchBusyNs(s) / r - busyNs(s) / rows(s)
        squares += innovation * innovation * r * rows(s) / (r + rows(s))
      }
      s += 1
    }
    val seen = squares.result()
    if (seen.nonEmpty) {
      java.util.Arrays.sort(seen)
      val now = seen(seen.length / 2) / RowCosts.MedianOfSquare
      noise = if (noise == 0.0) now else RowCosts.Keep * noise + (1 - RowCosts.Keep) * now
    }
  }

  /**
   * Cost of a row of each shard, relative to the mean row.
   *
   * @return
   *   None while nothing was learnt, or where no shard's rows can be told from another's
   */
  def relative: Option[Array[Double]] = {
    val allRows = rows.sum
    val mean = busyNs.sum / allRows
    // With one batch there is no telling what is noise.
    if (batches < 2 || !(mean > 0.0)) None
    else {
      val spread = variance(mean, allRows)
      Option.when(spread > RowCosts.LeastSpread * RowCosts.LeastSpread * mean * mean) {
        Array.tabulate(shardCount) { s =>
          if (rows(s) == 0.0) 1.0
          else 1.0 + (busyNs(s) / rows(s) / mean - 1.0) * spread / (spread + noise / rows(s))
        }
      }
    }
  }

  /** Variance of the shards' true costs: what is left of the variance of their means without noise. */
  private def variance(mean: Double, allRows: Double): Double = {
    var distances = 0.0
    var squares = 0.0
    var known = 0
    var s = 0
    while (s < shardCount) {
      if (rows(s) > 0.0) {
        val d = busyNs(s) / rows(s) - mean
        distances += rows(s) * d * d
        squares += rows(s) * rows(s)
        known += 1
      }
      s += 1
    }
    if (known < 2) 0.0 else math.max(0.0, (distances - (known - 1) * noise) / (allRows - squares / allRows))
  }
}

object RowCosts {

  /** What is left of a batch's weight when the next has come. */
  private val Keep = 0.9

  /** Median of the square of a standard normal variable. */
  private val MedianOfSquare = 0.4549

  /** Shards whose costs differ by less, as a standard deviation over the mean, are taken for equal. */
  private val LeastSpread = 0.05
}
