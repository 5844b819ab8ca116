package io.penstock.routing

/**
 * What it takes to bring a shard's state from one executor to another.
 *
 * @param bytesPerMs
 *   at which state travels
 * @param moveMs
 *   what a shard takes besides
 */
final case class MoveCost(bytesPerMs: Double, moveMs: Double) {

  /** Time in ms; none where there is no state. */
  def ms(stateBytes: Long): Double = if (stateBytes <= 0L) 0.0 else stateBytes / bytesPerMs + moveMs

  /**
   * What is known after another batch, of which a quarter counts.
   *
   * @param bytes
   *   that tasks brought in it; few say nothing
   * @param ms
   *   that it took, over all tasks
   * @param shards
   *   that these were
   */
  def after(bytes: Long, ms: Double, shards: Int): MoveCost =
    if (bytes < MoveCost.TellingBytes) this
    else {
      val found = math.max(0.0, ms - shards * moveMs) / bytes
      val msPerByte = (1.0 - MoveCost.BatchWeight) / bytesPerMs + MoveCost.BatchWeight * found
      copy(bytesPerMs = math.min(math.max(1.0 / msPerByte, MoveCost.MinBytesPerMs), MoveCost.MaxBytesPerMs))
    }
}

object MoveCost {

  /** Where nothing is known yet: 100 MB a second, which a network of 1 Gbit has: less than any transport was measured to bring between two processes. */
  val Usual: MoveCost = MoveCost(bytesPerMs = 100000.0, moveMs = 1.0)

  private val TellingBytes = 1L << 20
  private val BatchWeight = 0.25

  /** A megabyte a second. */
  private val MinBytesPerMs = 1e3

  /** Two gigabytes a second. */
  private val MaxBytesPerMs = 2e6

  /** Where nothing travels, and the checkpoint is read: perhaps from a distant store, by the task that needs it. */
  val FromCheckpoint: MoveCost = MoveCost(bytesPerMs = 20000.0, moveMs = 20.0)
}
