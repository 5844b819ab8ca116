package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.engine.ShardState
import io.penstock.state.format._

/**
 * One state partition of one store in a checkpoint, version by version: every version that is retained can be had. It is
 * the base shard with that number and the shards of those pinned hashes that would be in it; that keys moved between them
 * is not to be seen.
 *
 * @param end
 *   the newest version of interest; earlier ones are those that led to it
 */
final class ShardHistory(directory: StateDirectory, store: StoreKey, partition: Int, end: Long) {

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
   * The partition at a version.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_MISSING where the version is not there, PENSTOCK_CORRUPT_FILE and PENSTOCK_MISSING_FILE
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
   * Refuses to read a part of the state for the whole, for all readers of it: they read as many partitions as have
   * folders, and a copy of a checkpoint may have lost some.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_PARTITION_FOLDERS
   */
  def verifyPartitions(): Unit = if (end > 0L) {
    val count = if (manifest(end).stores.get(store).exists(_.size == 1)) 1 else manifest(end).shardCount
    // Each reads its own, and one of them looks for the others.
    val there = if (partition == 0) directory.partitions(store.operatorId).count(_ < count) else count
    val folder = directory.operatorFolder(store.operatorId)
    def refuse(what: String, remedy: String) = throw new PenstockException(
      "PENSTOCK_PARTITION_FOLDERS",
      s"$what: Spark's reader would not read the state as it is. None of it is lost. $remedy"
    )
    if (there < count) {
      refuse(
        s"$there of $count folders of state partitions are there, $folder/0 to ${count - 1}; copies of checkpoints may lack " +
          "folders that were empty",
        s"Start the query with this checkpoint, which makes them sure, or make them in $folder"
      )
    }
    if (partition >= count)
      refuse(s"$folder/$partition is no state partition: there are $count, from 0", "Remove the folder")
  }

  /** Hands over what happened to keys on the way to a version, nothing where a batch left them alone; throws as `content`. */
  def changes(version: Long, sink: ChangeSink): Unit = {
    val sets = shards(version).flatMap(changeSet(version, _))
    // A family that is removed is so in every shard, and may be made anew in the same batch.
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

  /** The partition at version `to`, made of version `from` and every change since: no snapshot that is younger is used. */
  def replay(from: Long, to: Long): ShardState = {
    val state = content(from)
    (from + 1 to to).foreach { version =>
      shards(version).foreach(follows(version, _))
      changes(version, state)
    }
    state
  }

  private def follows(version: Long, shard: Int): Unit = {
    val goesOn = version > 1L && layout(version).continues(shard, layout(version - 1))
    val before = if (goesOn) refs(version - 1, shard) else ShardRefs.Empty
    val now = refs(version, shard)
    val begun = now.copy(deltas = now.deltas.filter(_.version < version))
    if (begun.lineage != before.lineage) {
      throw FileFormat.corrupt(
        directory.name(Container.InManifest(version - 1, manifest(version).generation).path),
        FileFormat.HeaderBytes,
        s"shard $shard of operator ${store.operatorId}, store ${store.storeName}, does not go on from the batch before"
      )
    }
  }

  private def refs(version: Long, shard: Int): ShardRefs =
    ShardLoader.refs(manifest(version), store, Seq(shard), directory)(shard)

  private def layout(version: Long): Layout = manifest(version).layout(store)

  /** The shards that the partition is made of, the base shard first. */
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
    s"${directory.stateRoot} has no state of batch $batchId: it was never written, or is older than " +
      "spark.sql.streaming.minBatchesToRetain batches"
  )
}

/** Lets the removals of families through. */
final private class RemovalsOnly(sink: ChangeSink) extends ChangeSink {
  override def removeFamily(name: String): Unit = sink.removeFamily(name)
  override def family(name: String, traits: FamilyTraits, moved: Boolean): FamilyChangeSink = NoChanges
}

/** Lets changes of keys through that are not moves from shard to shard. */
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
