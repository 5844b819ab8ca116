package io.penstock.benchmarks.work

import java.util.concurrent.ConcurrentHashMap

/**
 * Keys `0 until keys` whose frequencies follow Zipf's law. The ranks of the keys are fixed, or change after a number of
 * rows.
 *
 * @param shuffleRows
 *   number of rows after which other keys become hot. 0 if the ranks never change
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

  /** Cumulative frequencies. All tasks of a process share them, because computing them takes as long as many rows. */
  private def cumulative(keys: Int, exponent: Double): Array[Double] = known.computeIfAbsent(
    (keys, exponent),
    _ => {
      val weights = Array.tabulate(keys)(i => math.pow(i + 1.0, -exponent))
      val total = weights.sum
      weights.scanLeft(0.0)(_ + _).tail.map(_ / total)
    }
  )

  /** A pseudo-random number from 0 to 1 for each row. */
  private[work] def drawn(row: Long): Double = (mix(row) >>> 11) * math.pow(2, -53)

  /** Finaliser of SplitMix64, which maps neighbouring numbers far apart. */
  private[work] def mix(x: Long): Long = {
    var z = x * 0x9e3779b97f4a7c15L + 0x632be59bd9b4e019L
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL
    z ^ (z >>> 31)
  }
}
