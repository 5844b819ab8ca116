package io.penstock.telemetry

/**
 * State that had to be brought to the executors of a batch's tasks.
 *
 * @param bytes
 *   Size of the shards whose state was on another executor before
 * @param loadNs
 *   Time for which tasks loaded shards that were not in their executor's memory, sum over all tasks
 * @param brought
 *   Number of shards that tasks loaded, counted per store, by source: a transport, [[MovedState.Checkpoint]] or
 *   [[MovedState.Changes]]
 * @param ahead
 *   Number of shards that arrived before tasks needed them
 * @param aheadBytes
 *   Size of the shards that arrived before tasks needed them
 */
final case class MovedState(
    bytes: Long,
    loadNs: Long,
    brought: Map[String, Int] = Map.empty,
    ahead: Int = 0,
    aheadBytes: Long = 0L
) {
  def +(other: MovedState): MovedState = MovedState(
    bytes + other.bytes,
    loadNs + other.loadNs,
    (brought.keySet ++ other.brought.keySet).map(k =>
      k -> (brought.getOrElse(k, 0) + other.brought.getOrElse(k, 0))
    ).toMap,
    ahead + other.ahead,
    aheadBytes + other.aheadBytes
  )

  /** Number of shards from other executors' memory; None if any shard was read from the checkpoint. */
  def travelled: Option[Int] =
    Option.when(!brought.contains(MovedState.Checkpoint) && !brought.contains(MovedState.Changes))(brought.values.sum)

  /** Number of shards by source as text, the most frequent source first. */
  def inWords: String = brought.toSeq.sortBy { case (source, shards) => (-shards, source) }
    .map { case (source, shards) => s"$source $shards" }.mkString(", ")
}

object MovedState {

  /** Source of shards that were read from the checkpoint. */
  val Checkpoint = "checkpoint"

  /** Source of shards in memory at an older version, for which only later changes were read from the checkpoint. */
  val Changes = "changes"

  val Nothing: MovedState = MovedState(0L, 0L)
}
