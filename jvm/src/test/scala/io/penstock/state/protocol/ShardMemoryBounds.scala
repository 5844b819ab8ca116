package io.penstock.state.protocol

/**
 * How much may happen in memory of executors.
 *
 * @param attempts
 *   in each batch, retries and speculative copies included
 * @param lives
 *   of the checkpoint: it is deleted and begun anew at the same path in between
 * @param handsOver
 *   whether an executor may hand over what it has while nobody has asked
 * @param ends
 *   executors that end
 * @param snapshots
 *   whether an executor writes one
 */
final case class ShardMemoryBounds(
    attempts: Vector[Int],
    executors: Int = 2,
    lives: Int = 1,
    handsOver: Boolean = false,
    ends: Int = 0,
    snapshots: Boolean = false
) {
  def batches: Int = attempts.size
}
