package io.penstock.routing

/**
 * Imbalance that is not corrected, because a move would gain less than random variation. Rows of one shard take
 * different times, so the times of tasks with equal load differ as well; a finer balance of loads gains nothing. A move
 * must also save a measurable amount of time.
 *
 * @param rowDeviation
 *   standard deviation of the time of a shard's row over its mean
 * @param msPerLoad
 *   time of a unit of load; 0 if it is not known
 */
final case class DeadBand(rowDeviation: Double, msPerLoad: Double) {

  /** Imbalance up to which no shard is moved, at least 1. */
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

  /** Every imbalance is corrected. */
  val Empty: DeadBand = DeadBand(0.0, 0.0)

  /** Smallest reduction of a batch's time that counts as a gain. */
  private val MinGainMs = 1.0

  /** Part of the deviation of a task's time that a move must gain. */
  private val PartOfDeviation = 0.5

  /** Upper bound: a task that exceeds the mean by more than this is always relieved. */
  private val Most = 0.1
}
