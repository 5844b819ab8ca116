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
 * @param aheadBytes
 *   their size
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

  /** How many shards of stores tasks brought from other executors' memory; None where the checkpoint took part. */
  def travelled: Option[Int] =
    Option.when(!brought.contains(MovedState.Checkpoint) && !brought.contains(MovedState.Changes))(brought.values.sum)

  /** The numbers of shards in words, the most frequent way first. */
  def inWords: String = brought.toSeq.sortBy { case (way, shards) => (-shards, way) }
    .map { case (way, shards) => s"$way $shards" }.mkString(", ")
}

object MovedState {

  /** In place of a transport: shards that were read from the checkpoint. */
  val Checkpoint = "checkpoint"

  /** Shards that an earlier batch had left here: only later changes were read from the checkpoint. */
  val Changes = "changes"

  val Nothing: MovedState = MovedState(0L, 0L)
}
