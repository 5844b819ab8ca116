package io.penstock.routing

/**
 * What it takes to bring a shard's state from one worker to another.
 *
 * @param bytesPerMs
 *   at which state travels
 * @param moveMs
 *   what a shard takes besides
 */
final case class MoveCost(bytesPerMs: Double, moveMs: Double) {

  /** Time in ms; none where there is no state. */
  def ms(stateBytes: Long): Double = if (stateBytes <= 0L) 0.0 else stateBytes / bytesPerMs + moveMs
}

object MoveCost {

  /** 100 MB a second, which a network of 1 Gbit has: less than any transport was measured to bring between two processes. */
  val Usual: MoveCost = MoveCost(bytesPerMs = 100000.0, moveMs = 1.0)

  /** Where nothing travels, and the checkpoint is read: perhaps from a distant store, by the task that needs it. */
  val FromCheckpoint: MoveCost = MoveCost(bytesPerMs = 20000.0, moveMs = 20.0)
}
