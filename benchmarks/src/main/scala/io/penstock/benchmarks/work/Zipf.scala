package io.penstock.benchmarks.work

import java.util.concurrent.ConcurrentHashMap

/**
 * Keys `0 until keys` whose frequencies follow Zipf's law. Which key has which rank is fixed, or another after some rows.
 *
 * @param shuffleRows
 *   after so many rows other keys are the hot ones; never where it is 0
 */
final case class Zipf(keys: Int, exponent: Double, shuffleRows: Long) extends Keys {
  @transient private lazy val cumulative: Array[Double] = Zipf.cumulative(keys, exponent)

  override def key(row: Long): Long = {
    val drawn = Zipf.drawn(row)
    val found = java.util.Arrays.binarySearch(cumulative, drawn)
    val rank = math.min(keys - 1, if (found < 0) -found - 1 else found)
    val shift = if (shuffleRows > 0) Math.floorMod(Zipf.mix(row / shuffleRows + 1), keys.toLong) else 0L
    (rank + shift) % keys
  }
}

object Zipf {
  private val known = new ConcurrentHashMap[(Int, Double), Array[Double]]()

  /** Shared by all tasks of a process: it takes as long as thousands of rows. */
  private def cumulative(keys: Int, exponent: Double): Array[Double] = known.computeIfAbsent(
    (keys, exponent),
    _ => {
      val weights = Array.tabulate(keys)(i => math.pow(i + 1.0, -exponent))
      val total = weights.sum
      weights.scanLeft(0.0)(_ + _).tail.map(_ / total)
    }
  )

  /** A number from 0 to 1 for each row, like random. */
  private[work] def drawn(row: Long): Double = (mix(row) >>> 11) * math.pow(2, -53)

  /** Finaliser of SplitMix64: neighbours become far apart. */
  private[work] def mix(x: Long): Long = {
    var z = x * 0x9e3779b97f4a7c15L + 0x632be59bd9b4e019L
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL
    z ^ (z >>> 31)
  }
}
