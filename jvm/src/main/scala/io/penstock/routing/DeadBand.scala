package io.penstock.routing

/**
 * Imbalance that is left alone: a move must gain more than chance takes and gives. Rows of one shard do not all take the same
 * time, so that tasks with equal rows differ by more than a fine balance of rows could gain; and what is gained must be
 * a time that can be told from none.
 *
 * @param rowDeviation
 *   standard deviation of the time of a row of one shard, over its mean
 * @param msPerLoad
 *   what a unit of load takes; 0 where that is not known
 */
final case class DeadBand(rowDeviation: Double, msPerLoad: Double) {

  /** Busiest task over the mean up to which nothing moves, at least 1. */
  def overMean(load: Array[Long], tasks: Int): Double = {
    val total = load.sum.toDouble
    if (total <= 0.0) 1.0
    else {
      val deviation = rowDeviation * math.sqrt(tasks * Load.OfTypicalRow / total)
      val short = if (msPerLoad > 0.0) DeadBand.MinGainMs * tasks / (total * msPerLoad) else 0.0
      1.0 + math.min(DeadBand.Most, math.max(deviation * DeadBand.PartOfDeviation, short))
    }
  }
}

object DeadBand {

  /** Nothing is left alone. */
  val Empty: DeadBand = DeadBand(0.0, 0.0)

  /** A batch that becomes shorter by less has gained nothing. */
  private val MinGainMs = 1.0

  /** Half of the deviation of a task's time may be gained on average where it is not known which task it makes longer. */
  private val PartOfDeviation = 0.5

  /** However short or uneven rows are, a task with so much more than the mean is relieved. */
  private val Most = 0.1
}
