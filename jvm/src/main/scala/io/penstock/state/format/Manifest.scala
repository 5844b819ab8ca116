package io.penstock.state.format

import java.util.UUID

import io.penstock.sharding.Layout

/** A state store of a query: the stores of an operator are told apart by name. */
final case class StoreKey(operatorId: Long, storeName: String)

object StoreKey {

  def put(out: ByteSink, key: StoreKey): Unit = {
    out.putVarint(key.operatorId)
    out.putString(key.storeName)
  }

  def get(in: ByteSource): StoreKey = StoreKey(in.getNumber("operator", 0L, Long.MaxValue), in.getString())
}

/** A file that holds sections. Paths are relative to the query's Penstock directory. */
sealed trait Container extends Serializable {
  def path: String
}

object Container {

  /** Changes that one task attempt made in a batch. */
  final case class Changelog(batchId: Long, uuid: UUID) extends Container {
    override def path: String = s"changelogs/$batchId-$uuid"
  }

  /** Whole shards, written in the background. */
  final case class Snapshots(version: Long, uuid: UUID) extends Container {
    override def path: String = s"snapshots/$version-$uuid"
  }

  /** Changes small enough to be written by the driver together with the manifest of their batch. */
  final case class InManifest(batchId: Long, generation: Long) extends Container {
    override def path: String = s"manifests/$batchId.$generation"
  }
}

/**
 * Where the bytes of one change set are.
 *
 * @param offset
 *   from the start of the file
 * @param crc
 *   CRC32C of the bytes
 */
final case class SectionRef(container: Container, offset: Long, length: Int, crc: Int) extends Serializable

/**
 * The changes of one shard that led to a version.
 *
 * @param version
 *   the store version that the changes make, batch id + 1
 * @param lineage
 *   uuid of the commit that made them; names the shard's content from then on
 */
final case class DeltaRef(version: Long, lineage: UUID, section: SectionRef) extends Serializable

/** The whole content of one shard as it was at a version. */
final case class SnapshotRef(version: Long, lineage: UUID, section: SectionRef) extends Serializable

/** All that is needed to rebuild one shard: a snapshot, if there is one, and the changes since, oldest first. */
final case class ShardRefs(snapshot: Option[SnapshotRef], deltas: Vector[DeltaRef]) extends Serializable {

  /** Uuid of the commit that last changed the shard, or [[ShardRefs.NeverWritten]]. */
  def lineage: UUID =
    if (deltas.nonEmpty) deltas.last.lineage else snapshot.fold(ShardRefs.NeverWritten)(_.lineage)

  /** All parts in the order in which they apply. */
  def sections: Vector[SectionRef] = snapshot.map(_.section).toVector ++ deltas.map(_.section)

  /** The content as it was at a lineage, if the changes lead over it. */
  def upTo(lineage: UUID): Option[ShardRefs] = {
    val i = deltas.lastIndexWhere(_.lineage == lineage)
    if (i >= 0) Some(copy(deltas = deltas.take(i + 1)))
    else Option.when(snapshot.exists(_.lineage == lineage))(copy(deltas = Vector.empty))
  }

  /** The changes that lead on from a lineage, oldest first, where it is of this history. */
  def since(lineage: UUID): Option[Vector[DeltaRef]] = upTo(lineage).map(before => deltas.drop(before.deltas.size))

  /** The same content with the snapshot in place of the changes that it holds, if it belongs to this history. */
  def withSnapshot(s: SnapshotRef): Option[ShardRefs] = {
    val i = deltas.lastIndexWhere(d => d.lineage == s.lineage)
    if (i >= 0) Some(ShardRefs(Some(s), deltas.drop(i + 1))) else None
  }

  /** Adds `by` to the offsets of changes in `container`, which are the newest if there are any. */
  private[format] def shifted(container: Container, by: Long): ShardRefs = deltas.lastOption match {
    case Some(d) if d.section.container == container =>
      copy(deltas = deltas.init :+ d.copy(section = d.section.copy(offset = d.section.offset + by)))
    case _ => this
  }

  def containers: Iterator[Container] = snapshot.iterator.map(_.section.container) ++
    deltas.iterator.map(_.section.container)
}

object ShardRefs {
  val NeverWritten = new UUID(0L, 0L)
  val Empty: ShardRefs = ShardRefs(None, Vector.empty)
}

/**
 * The state of a query after a batch: the newest generation of a batch's manifest is the truth, and what no retained
 * manifest names does not exist.
 *
 * @param baseGeneration
 *   generation of the manifest of the batch before that this one goes on from; -1 in the first batch
 * @param retainedFrom
 *   oldest batch of which everything is kept. Of older batches there may be manifests all the same, for the sake of their
 *   payloads: they are no states that can be read
 * @param shardCount
 *   S
 * @param stores
 *   one entry per shard; a store of an operator that takes one partition only has a single entry, shard 0
 * @param pinSlots
 *   pinned hashes of those stores that have any, as in a [[io.penstock.sharding.Layout]]
 */
final case class Manifest(
    batchId: Long,
    generation: Long,
    baseGeneration: Long,
    retainedFrom: Long,
    runId: UUID,
    writtenAtMs: Long,
    shardCount: Int,
    stores: Map[StoreKey, Vector[ShardRefs]],
    pinSlots: Map[StoreKey, Vector[Option[Int]]] = Map.empty
) extends Serializable {

  /** How the state of a store is laid out. */
  def layout(store: StoreKey): Layout = Layout(shardCount, pinSlots.getOrElse(store, Vector.empty))

  /**
   * This manifest as it is read once it was written with a body of `bodyLength` bytes: offsets of what lies in its own
   * payload are from the start of the file.
   */
  def written(bodyLength: Int): Manifest = {
    val own = Container.InManifest(batchId, generation)
    val payloadAt = FileFormat.HeaderBytes.toLong + bodyLength
    copy(stores = stores.map { case (key, shards) => key -> shards.map(_.shifted(own, payloadAt)) })
  }

  /** Lineage of each shard of a store, high and low bits; empty where there is no such store. */
  def lineages(store: StoreKey): Array[Long] =
    stores.getOrElse(store, Vector.empty).iterator.map(_.lineage)
      .flatMap(l => Iterator(l.getMostSignificantBits, l.getLeastSignificantBits)).toArray

  def containers: Set[Container] = stores.valuesIterator.flatMap(_.iterator.flatMap(_.containers)).toSet
}
