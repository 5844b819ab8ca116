package io.penstock.telemetry

import java.util.SplittableRandom

/**
 * Chooses the rows that are timed, so that timing takes a fixed share of a task's time, whatever a row costs: every row
 * if rows are slow, one of many if they are fast. Distances are random, because rows may arrive in patterns. Not thread
 * safe.
 *
 * @param budget
 *   Share of the time that timing may take
 * @param timingNs
 *   Time that it takes to time one row
 */
final class SampleSpacing(seed: Long, budget: Double, timingNs: Long) {
  private val random = new SplittableRandom(seed)
  private var spacing = 1
  private var left = 1
  private var meanNs = 0.0
  private var samples = 0

  /** Whether the next row is timed. Must be called once for each row. */
  def takes(): Boolean = {
    left -= 1
    left == 0
  }

  /** Whether the next call of [[takes]] returns true. */
  def isDue: Boolean = left == 1

  /** Number of rows for which the timed row stands. */
  def weight: Int = spacing

  /** Whether a time is so long that it may include an interruption. */
  def isUnusual(ns: Long): Boolean =
    ns > SampleSpacing.LongNs || ns > SampleSpacing.MinNs && ns > SampleSpacing.UnusualRatio * meanNs

  /**
   * Must be called with the time of each timed row.
   *
   * @return
   *   Time of the row and those for which it stands. A pause during the timed row is counted once, not for all of them
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

  /** Number of timed rows over which the mean extends. */
  private val Memory = 64

  /** Maximum mean distance between two timed rows. */
  private val Widest = 4096.0

  /** Times above this are always checked for interruptions, because the cost of the check is small in comparison. */
  private val LongNs = 1000000L

  /** Times up to this are never checked, because an interruption in them does not matter. */
  private val MinNs = 50000L
  private val UnusualRatio = 4.0

  /** Limit of a time, in mean rows, before it is multiplied by the number of rows that it stands for. */
  private val MaxRatio = 100
}
