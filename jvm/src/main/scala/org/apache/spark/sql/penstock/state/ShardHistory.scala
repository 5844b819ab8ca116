package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import io.penstock.errors.PenstockException
import io.penstock.state.engine.ShardState
import io.penstock.state.format._

/**
 * One shard of one store in a checkpoint, version by version: every version that is retained can be had.
 *
 * @param end
 *   the newest version of interest; earlier ones are those that led to it
 */
final class ShardHistory(directory: StateDirectory, store: StoreKey, shard: Int, end: Long) {

  /** Of batch `end - 1`, and back from there. */
  private val chain = mutable.ArrayBuffer.empty[Manifest]
  private lazy val generations = directory.newestGenerations()

  /** Manifests of older batches are there for their payloads only. */
  private lazy val retainedFrom = generations.maxByOption(_._1).fold(0L) { case (batchId, generation) =>
    // Whether the newest state can be read is not the question here.
    try read(batchId, generation).retainedFrom
    catch { case _: PenstockException => 0L }
  }

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
      val set = directory.readSections(section.container, Seq(section), neededBy)(_.takeAll()).head
      FileFormat.needed(neededBy) {
        FileFormat.reading(directory.name(section.container.path), section.offset) {
          ChangeSet.read(set, 0, set.length, sink)
        }
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
        directory.name(Container.InManifest(version - 1, manifest(version).generation).path),
        FileFormat.HeaderBytes,
        s"shard $shard of operator ${store.operatorId}, store ${store.storeName}, does not go on from the batch before"
      )
    }
  }

  private def refs(version: Long): ShardRefs = ShardLoader.refs(manifest(version), store, Seq(shard), directory)(shard)

  /** The manifest of the batch that made the version. */
  private def manifest(version: Long): Manifest = {
    if (version > end || version <= retainedFrom) throw missing(version - 1)
    if (chain.isEmpty) chain += read(end - 1, generations.getOrElse(end - 1, throw missing(end - 1)))
    while (chain.last.batchId >= version) {
      val after = chain.last
      if (after.baseGeneration < 0) throw missing(version - 1)
      chain += read(after.batchId - 1, after.baseGeneration)
    }
    chain((end - version).toInt)
  }

  private def read(batchId: Long, generation: Long): Manifest =
    if (directory.exists(Container.InManifest(batchId, generation).path))
      ManifestCache.get(directory, batchId, generation)
    else throw missing(batchId)

  private def missing(batchId: Long) = new PenstockException(
    "PENSTOCK_STATE_MISSING",
    s"${directory.stateRoot} has no state of batch $batchId: it was never written, or is older than " +
      "spark.sql.streaming.minBatchesToRetain batches"
  )
}
