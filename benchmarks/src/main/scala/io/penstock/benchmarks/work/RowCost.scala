package io.penstock.benchmarks.work

/**
 * What a row of a key takes: one millisecond on average over the keys, the dearest `spread` times as much as the cheapest.
 * Fixed for a key, and evenly spread in its logarithm.
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
