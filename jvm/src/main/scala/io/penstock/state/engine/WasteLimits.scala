package io.penstock.state.engine

import java.util.concurrent.atomic.AtomicLong

/**
 * Share of an arena's bytes that may be dead before its live records are copied to a new arena. The share differs
 * between arenas, so that shards whose keys change at the same pace are not all copied in the same batch.
 */
object WasteLimits {

  /** Smallest share. At most two bytes are copied for each byte that dies. */
  val Least: Double = 1.0 / 3

  /** Largest share. An arena holds at most twice its live bytes. */
  val Largest: Double = 1.0 / 2

  private val InverseGoldenRatio = (math.sqrt(5) - 1) / 2

  /** Not in the executor context: a sequence that only spreads shares evenly, whichever application draws them. */
  private val drawn = new AtomicLong

  /** Share for the next arena. Multiples of the golden ratio stay evenly spread, however many are drawn. */
  def next(): Double = of(drawn.getAndIncrement())

  private[engine] def of(n: Long): Double = {
    val turns = n * InverseGoldenRatio
    Least + (turns - math.floor(turns)) * (Largest - Least)
  }
}
