package org.apache.spark.sql.penstock.state

import io.penstock.errors.PenstockException
import io.penstock.state.engine.ShardState
import io.penstock.state.format._

/** One shard of one store in a checkpoint, version by version: every version that is retained can be had. */
final class ShardHistory(directory: StateDirectory, store: StoreKey, shard: Int) {
  private lazy val generations = directory.newestGenerations()

  /**
   * The shard at a version.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_MISSING where the version is not there, PENSTOCK_CORRUPT_FILE and PENSTOCK_MISSING_FILE
   */
  def content(version: Long): ShardState =
    if (version == 0L) new ShardState
    else new ShardLoader(directory).loadOne(manifest(version), store, shard).content

  /** Hands over the changes that made a version of the shard, none where a batch left it alone; throws as `content`. */
  def changes(version: Long, sink: ChangeSink): Unit =
    refs(version).deltas.find(_.version == version).foreach { delta =>
      val section = delta.section
      def neededBy = ShardLoader.needing(manifest(version), store, Seq(shard))
      val set = directory.readSections(section.container, Seq(section), neededBy).head
      FileFormat.reading(directory.name(section.container.path), section.offset) {
        ChangeSet.read(set, 0, set.length, sink)
      }
    }

  /** The shard at version `to`, made of version `from` and every change since: no snapshot that is younger is used. */
  def replay(from: Long, to: Long): ShardState = {
    val state = content(from)
    (from + 1 to to).foreach { version =>
      follows(version)
      changes(version, state)
    }
    state
  }

  private def follows(version: Long): Unit = {
    val before = if (version == 1L) ShardRefs.Empty else refs(version - 1)
    val now = refs(version)
    val begun = now.copy(deltas = now.deltas.filter(_.version < version))
    if (begun.lineage != before.lineage) {
      throw FileFormat.corrupt(
        directory.name(Container.InManifest(version - 1, generations(version - 1)).path),
        FileFormat.HeaderBytes,
        s"shard $shard of operator ${store.operatorId}, store ${store.storeName}, does not go on from the batch before"
      )
    }
  }

  private def refs(version: Long): ShardRefs = ShardLoader.refs(manifest(version), store, Seq(shard), directory)(shard)

  private def manifest(version: Long): Manifest = {
    val batch = version - 1
    val generation = generations.getOrElse(
      batch,
      throw new PenstockException(
        "PENSTOCK_STATE_MISSING",
        s"${directory.stateRoot} has no state of batch $batch: it was never written, or is older than " +
          "spark.sql.streaming.minBatchesToRetain batches"
      )
    )
    ManifestCache.get(directory, batch, generation)
  }
}
