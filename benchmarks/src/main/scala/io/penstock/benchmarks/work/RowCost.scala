package io.penstock.benchmarks.work

/**
 * Cost of a row, which depends on its key. The mean over all keys is one millisecond, and the most expensive key costs
 * `spread` times as much as the cheapest. The logarithm of the cost is uniformly distributed.
 */
final case class RowCost(spread: Double) {
  private val cheapestNs = RowCost.MeanNs / (if (spread > 1) (spread - 1) / math.log(spread) else 1.0)

  def ns(key: Long): Long = {
    math.round(cheapestNs * math.pow(spread, Zipf.drawn(~key)))
  }
}

object RowCost {
  private val MeanNs = 1e6
}
