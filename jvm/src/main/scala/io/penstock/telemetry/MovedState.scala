package io.penstock.telemetry

/**
 * State that a batch had to bring to where its tasks run.
 *
 * @param bytes
 *   size of the shards that another executor had before
 * @param loadNs
 *   time in which tasks brought what was not in their executor's memory, over all tasks
 * @param brought
 *   how many shards of stores that were, by how they came
 * @param ahead
 *   shards that came before tasks wanted them
 */
final case class MovedState(bytes: Long, loadNs: Long, brought: Map[String, Int] = Map.empty, ahead: Int = 0) {
  def +(other: MovedState): MovedState = MovedState(
    bytes + other.bytes,
    loadNs + other.loadNs,
    (brought.keySet ++ other.brought.keySet).map(k =>
      k -> (brought.getOrElse(k, 0) + other.brought.getOrElse(k, 0))
    ).toMap,
    ahead + other.ahead
  )

  /** The numbers of shards in words, the most frequent way first. */
  def inWords: String = brought.toSeq.sortBy { case (way, shards) => (-shards, way) }
    .map { case (way, shards) => s"$way $shards" }.mkString(", ")
}

object MovedState {
  val Nothing: MovedState = MovedState(0L, 0L)
}
