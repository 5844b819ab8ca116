package io.penstock.telemetry

import java.util.SplittableRandom

/**
 * Which rows are timed, so that timing costs a fixed share of a task whatever a row costs: every row where rows are
 * slow, one of many where they are fast. Distances are random, because rows may come in patterns. For one thread.
 *
 * @param budget
 *   share of the time that timing may take
 * @param timingNs
 *   what timing one row takes
 */
final class SampleSpacing(seed: Long, budget: Double, timingNs: Long) {
  private val random = new SplittableRandom(seed)
  private var spacing = 1
  private var left = 1
  private var meanNs = 0.0
  private var samples = 0

  /** Whether the next row is timed. */
  def takes(): Boolean = {
    left -= 1
    left == 0
  }

  /** Whether the next question of [[takes]] will be answered with yes. */
  def isDue: Boolean = left == 1

  /** Rows that the row which is timed stands for. */
  def weight: Int = spacing

  /** Whether a time is so long that something else may have come between. */
  def isUnusual(ns: Long): Boolean =
    ns > SampleSpacing.LongNs || ns > SampleSpacing.MinNs && ns > SampleSpacing.UnusualRatio * meanNs

  /**
   * To be called with the time of each timed row.
   *
   * @return
   *   the time to book for the row and those it stands for. Where a pause happened to fall on it, the pause is booked once
   *   and not for all of them
   */
  def timed(ns: Long): Long = {
    val usual = math.min(ns.toDouble, SampleSpacing.MaxRatio * meanNs)
    val booked = if (spacing == 1) ns else math.max(ns, (spacing * usual).toLong)
    samples += 1
    meanNs += (ns - meanNs) / math.min(samples, SampleSpacing.Memory)
    spacing = math.ceil(timingNs / (budget * math.max(meanNs, 1.0))).min(SampleSpacing.Widest).max(1.0).toInt
    left = if (spacing == 1) 1 else 1 + random.nextInt(2 * spacing - 1)
    booked
  }
}

object SampleSpacing {

  /** Timed rows that the mean remembers. */
  private val Memory = 64

  /** Rows between two that are timed, on average, at most. */
  private val Widest = 4096.0

  /** Against these, a look at what may have come between costs nothing. */
  private val LongNs = 1000000L

  /** Up to here, what may have come between does not matter. */
  private val MinNs = 50000L
  private val UnusualRatio = 4.0

  /** Before a time is multiplied, since its row stands for others, it is cut to so many mean rows. */
  private val MaxRatio = 100
}
