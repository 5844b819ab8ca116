package io.penstock.state.protocol

/** A fault that is built into memory of executors, to see that the properties find it. */
sealed trait ShardMemoryMutation

object ShardMemoryMutation {

  /** Content is brought forward in place though a task holds it. */
  case object FoldInPlace extends ShardMemoryMutation

  /** A manifest in the cache is used whatever its lineage is. */
  case object TrustCachedManifest extends ShardMemoryMutation

  /** A manifest that was read from the checkpoint is used whatever its lineage is. */
  case object TrustReadManifest extends ShardMemoryMutation

  /** A task takes what is in the slot if it is of the right batch. */
  case object OpenByBatch extends ShardMemoryMutation

  /** A change set is folded if it is of the right batch. */
  case object FoldByBatch extends ShardMemoryMutation

  /** A change set that leads to the lineage is folded into whatever is in the slot. */
  case object FoldIntoAny extends ShardMemoryMutation

  /** An executor gives what is in its slot, whatever was asked for. */
  case object GiveByName extends ShardMemoryMutation

  /** Deltas are counted: content of so many batches lacks all that follow. */
  case object CatchUpByBatch extends ShardMemoryMutation

  /** A manifest refers to a snapshot if it is of as many batches as there are deltas, or fewer. */
  case object SnapshotByBatch extends ShardMemoryMutation

  /** A snapshot goes by the lineage that its batch started from, though a hand-over has brought the content forward. */
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
