package io.penstock.state.protocol

/**
 * Bounds of the histories that a search of executor memory explores.
 *
 * @param attempts
 *   Number of attempts in each batch, including retries and speculative copies
 * @param lives
 *   Number of lives of the checkpoint. Between two lives it is deleted and started again at the same path
 * @param handsOver
 *   Whether an executor may hand over its content without being asked
 * @param ends
 *   Number of executors that end
 * @param snapshots
 *   Whether an executor writes a snapshot
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
