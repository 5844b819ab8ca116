package io.penstock.state.format

/**
 * How far the snapshots of a store are behind its state, that is, how many changes a reload applies to them.
 *
 * @param ageBatches
 *   Number of batches since the oldest change that is in no snapshot, including the batch of that change; maximum over
 *   all shards
 * @param changes
 *   Number of change sets that are in no snapshot, over all shards
 * @param bytes
 *   Size of these change sets
 */
final case class SnapshotLag(store: StoreKey, ageBatches: Long, changes: Long, bytes: Long)

object SnapshotLag {

  /** The lag of every store, sorted by operator and name. */
  def of(manifest: Manifest): Seq[SnapshotLag] =
    manifest.stores.toSeq.sortBy { case (key, _) => (key.operatorId, key.storeName) }.map { case (key, shards) =>
      var (age, changes, bytes) = (0L, 0L, 0L)
      shards.foreach { refs =>
        // Batch b creates version b + 1.
        refs.deltas.headOption.foreach(d => age = math.max(age, manifest.batchId + 2 - d.version))
        changes += refs.deltas.size
        refs.deltas.foreach(d => bytes += d.section.length)
      }
      SnapshotLag(key, age, changes, bytes)
    }
}
