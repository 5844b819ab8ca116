package io.penstock.state.engine

import java.util.concurrent.atomic.AtomicLong

/**
 * How much of an arena's bytes may be dead before its live records are copied to a new one: another part for each arena,
 * so that shards whose keys change at the same pace are copied one after the other, and not all in one batch.
 */
object WasteLimits {

  /** Least part; a byte that dies costs at most two that are copied. */
  val Least: Double = 1.0 / 3

  /** Largest part: an arena holds at most twice its live bytes. */
  val Largest: Double = 1.0 / 2

  private val InverseGoldenRatio = (math.sqrt(5) - 1) / 2

  private val drawn = new AtomicLong

  /** The next arena's part: multiples of the golden ratio, which stay evenly spread however many are drawn. */
  def next(): Double = of(drawn.getAndIncrement())

  private[engine] def of(n: Long): Double = {
    val turns = n * InverseGoldenRatio
    Least + (turns - math.floor(turns)) * (Largest - Least)
  }
}
