package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.engine.ShardState
import io.penstock.state.format._

/**
 * All retained versions of one state partition of one store in a checkpoint. The partition consists of the base shard
 * with that number and the shards of the pinned hashes that belong to it. Moves of keys between them are not visible.
 *
 * @param end
 *   newest version of interest. Earlier versions are those that led to it
 */
final class ShardHistory(directory: StateDirectory, store: StoreKey, partition: Int, end: Long) {

  /** Manifests of batch `end - 1` and of batches before, newest first. */
  private val chain = mutable.ArrayBuffer.empty[Manifest]
  private lazy val generations = directory.newestGenerations()

  /** Oldest batch whose state can be read. Manifests of older batches exist only for their payloads. */
  private lazy val retainedFrom = generations.maxByOption(_._1).fold(0L) { case (batchId, generation) =>
    // A newest manifest that cannot be read must not keep older versions from being read.
    try read(batchId, generation).retainedFrom
    catch { case _: PenstockException => 0L }
  }

  /**
   * The partition at a version.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_MISSING if the version does not exist, PENSTOCK_CORRUPT_FILE and PENSTOCK_MISSING_FILE
   */
  def content(version: Long): ShardState =
    if (version == 0L) new ShardState
    else {
      val loader = new ShardLoader(directory)
      val parts = shards(version).map(loader.loadOne(manifest(version), store, _).content)
      parts.tail.foreach(parts.head.addAll)
      parts.head
    }

  /**
   * Fails if Spark's reader would not read exactly the partitions of the state: it reads as many as have folders, and a
   * copy of a checkpoint may have lost some.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_PARTITION_FOLDERS
   */
  def verifyPartitions(): Unit = if (end > 0L) {
    val count = if (manifest(end).stores.get(store).exists(_.size == 1)) 1 else manifest(end).shardCount
    // Each reader reads its own partition, and the reader of partition 0 also looks for the others.
    val existing = if (partition == 0) directory.partitions(store.operatorId).count(_ < count) else count
    val folder = directory.operatorFolder(store.operatorId)
    def refuse(problem: String, remedy: String) = throw new PenstockException(
      "PENSTOCK_PARTITION_FOLDERS",
      s"$problem. Spark's reader would not read the state correctly. No state is lost. $remedy"
    )
    if (existing < count) {
      refuse(
        s"only $existing of $count folders of state partitions exist, $folder/0 to ${count - 1}. Copies of " +
          "checkpoints may lack folders that were empty",
        s"Start the query with this checkpoint, which creates the folders, or create them in $folder"
      )
    }
    if (partition >= count) {
      refuse(
        s"$folder/$partition is not a folder of a state partition: there are $count, numbered from 0",
        "Remove the folder"
      )
    }
  }

  /** Passes the changes that led to a version to `sink`. Moves between shards are left out. Throws as `content`. */
  def changes(version: Long, sink: ChangeSink): Unit = {
    val sets = shards(version).flatMap(changeSet(version, _))
    // Removals come first: a removed family is removed in every shard, and may be created again in the same batch.
    Seq(new RemovalsOnly(sink), new ChangesOnly(sink)).foreach(pass => sets.foreach(_(pass)))
  }

  /** A reader of the changes that made a version of a shard. */
  private def changeSet(version: Long, shard: Int): Option[ChangeSink => Unit] =
    refs(version, shard).deltas.find(_.version == version).map { delta =>
      val section = delta.section
      def neededBy = ShardLoader.needing(manifest(version), store, Seq(shard))
      val set = directory.readSections(section.container, Seq(section), neededBy)(_.takeAll()).head
      sink =>
        FileFormat.needed(neededBy) {
          FileFormat.reading(directory.name(section.container.path), section.offset) {
            ChangeSet.read(set, 0, set.length, sink)
          }
        }
    }

  /** The partition at version `to`, built from version `from` and all later changes, without newer snapshots. */
  def replay(from: Long, to: Long): ShardState = {
    val state = content(from)
    (from + 1 to to).foreach { version =>
      shards(version).foreach(verifyContinues(version, _))
      changes(version, state)
    }
    state
  }

  /** Fails if a shard at a version does not start from what the version before has of it. */
  private def verifyContinues(version: Long, shard: Int): Unit = {
    val continues = version > 1L && layout(version).continues(shard, layout(version - 1))
    val before = if (continues) refs(version - 1, shard) else ShardRefs.Empty
    val now = refs(version, shard)
    val start = now.copy(deltas = now.deltas.filter(_.version < version))
    if (start.lineage != before.lineage) {
      throw FileFormat.corrupt(
        directory.name(Container.InManifest(version - 1, manifest(version).generation).path),
        FileFormat.HeaderBytes,
        s"shard $shard of operator ${store.operatorId}, store ${store.storeName}, does not continue the previous batch"
      )
    }
  }

  private def refs(version: Long, shard: Int): ShardRefs =
    ShardLoader.refs(manifest(version), store, Seq(shard), directory)(shard)

  private def layout(version: Long): Layout = manifest(version).layout(store)

  /** The shards that the partition consists of, the base shard first. */
  private def shards(version: Long): Seq[Int] = layout(version).ofPartition(partition)

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
    ManifestCache.current(directory, batchId, generation).getOrElse(throw missing(batchId))

  private def missing(batchId: Long) = new PenstockException(
    "PENSTOCK_STATE_MISSING",
    s"${directory.stateRoot} has no state of batch $batchId: it was never written, or it is older than the batches " +
      "that spark.sql.streaming.minBatchesToRetain retains"
  )
}

/** Passes on only removals of families. */
final private class RemovalsOnly(sink: ChangeSink) extends ChangeSink {
  override def removeFamily(name: String): Unit = sink.removeFamily(name)
  override def family(name: String, traits: FamilyTraits, moved: Boolean): FamilyChangeSink = NoChanges
}

/** Passes on only changes of keys that are not moves between shards. */
final private class ChangesOnly(sink: ChangeSink) extends ChangeSink {
  override def removeFamily(name: String): Unit = ()
  override def family(name: String, traits: FamilyTraits, moved: Boolean): FamilyChangeSink =
    if (moved) NoChanges else sink.family(name, traits, moved)
}

private[state] object NoChanges extends FamilyChangeSink {
  override def put(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit = ()
  override def append(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit =
    ()
  override def remove(key: AnyRef, keyAt: Long, keyLength: Int): Unit = ()
}
