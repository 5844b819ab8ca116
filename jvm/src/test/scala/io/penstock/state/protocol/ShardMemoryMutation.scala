package io.penstock.state.protocol

/** A fault that is built into the model of executor memory to check that the properties detect it. */
sealed trait ShardMemoryMutation

object ShardMemoryMutation {

  /** Content is advanced in place although a task holds it. */
  case object FoldInPlace extends ShardMemoryMutation

  /** A cached manifest is used whatever its lineage is. */
  case object TrustCachedManifest extends ShardMemoryMutation

  /** A manifest read from the checkpoint is used whatever its lineage is. */
  case object TrustReadManifest extends ShardMemoryMutation

  /** A task uses the slot's content if only its batch is right. */
  case object OpenByBatch extends ShardMemoryMutation

  /** A change set is folded if only its batch is right. */
  case object FoldByBatch extends ShardMemoryMutation

  /** A change set that leads to the wanted lineage is folded into any content. */
  case object FoldIntoAny extends ShardMemoryMutation

  /** An executor sends the content of its slot, whatever was asked for. */
  case object GiveByName extends ShardMemoryMutation

  /** Deltas are counted: content of n batches is assumed to lack only the deltas after the first n. */
  case object CatchUpByBatch extends ShardMemoryMutation

  /** A manifest refers to a snapshot that contains at most as many batches as there are deltas. */
  case object SnapshotByBatch extends ShardMemoryMutation

  /**
   * A snapshot is labelled with the lineage that its batch started from, although a hand-over has advanced the content.
   */
  case object SnapshotOfBase extends ShardMemoryMutation

  val All: Seq[ShardMemoryMutation] = Seq(
    FoldInPlace,
    TrustCachedManifest,
    TrustReadManifest,
    OpenByBatch,
    FoldByBatch,
    FoldIntoAny,
    GiveByName,
    CatchUpByBatch,
    SnapshotByBatch,
    SnapshotOfBase
  )
}
