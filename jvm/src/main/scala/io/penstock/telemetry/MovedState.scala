package io.penstock.telemetry

/**
 * State that a batch had to bring to where its tasks run.
 *
 * @param bytes
 *   size of the shards that another executor had before
 * @param loadNs
 *   time in which tasks brought what was not in their executor's memory, over all tasks
 */
final case class MovedState(bytes: Long, loadNs: Long) {
  def +(other: MovedState): MovedState = MovedState(bytes + other.bytes, loadNs + other.loadNs)
}

object MovedState {
  val Nothing: MovedState = MovedState(0L, 0L)
}
