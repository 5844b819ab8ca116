package io.penstock.state.format

/**
 * How far the snapshots of a store are behind its state: what a reload has to apply to them.
 *
 * @param ageBatches
 *   batches since the oldest change that is in no snapshot, that one included; the largest of all shards
 * @param changes
 *   change sets that are in no snapshot, of all shards
 * @param bytes
 *   their size
 */
final case class SnapshotLag(store: StoreKey, ageBatches: Long, changes: Long, bytes: Long)

object SnapshotLag {

  /** The lag of every store, by operator and name. */
  def of(manifest: Manifest): Seq[SnapshotLag] =
    manifest.stores.toSeq.sortBy { case (key, _) => (key.operatorId, key.storeName) }.map { case (key, shards) =>
      var (age, changes, bytes) = (0L, 0L, 0L)
      shards.foreach { refs =>
        // Batch b makes version b + 1.
        refs.deltas.headOption.foreach(d => age = math.max(age, manifest.batchId + 2 - d.version))
        changes += refs.deltas.size
        refs.deltas.foreach(d => bytes += d.section.length)
      }
      SnapshotLag(key, age, changes, bytes)
    }
}
