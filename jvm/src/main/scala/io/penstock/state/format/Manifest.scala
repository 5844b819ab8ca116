package io.penstock.state.format

import java.util.UUID

import io.penstock.sharding.Layout

/** Identifies a state store of a query. The stores of an operator differ by name. */
final case class StoreKey(operatorId: Long, storeName: String)

object StoreKey {

  def put(out: ByteSink, key: StoreKey): Unit = {
    out.putVarint(key.operatorId)
    out.putString(key.storeName)
  }

  def get(in: ByteSource): StoreKey = StoreKey(in.getNumber("operator id", 0L, Long.MaxValue), in.getString())
}

/** A file that contains sections. Paths are relative to the query's Penstock directory. */
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

  /** Payload of a manifest: changes that are small enough to be written by the driver together with the manifest. */
  final case class InManifest(batchId: Long, generation: Long) extends Container {
    override def path: String = s"manifests/$batchId.$generation"
  }
}

/**
 * Location of the bytes of a change set or an image.
 *
 * @param offset
 *   Offset from the start of the file
 * @param crc
 *   CRC32C of the bytes
 */
final case class SectionRef(container: Container, offset: Long, length: Int, crc: Int) extends Serializable

/**
 * The changes of one batch to one shard.
 *
 * @param version
 *   Version of the store after these changes: batch id + 1
 * @param lineage
 *   UUID of the commit that made the changes. It identifies the content of the shard after them
 */
final case class DeltaRef(version: Long, lineage: UUID, section: SectionRef) extends Serializable

/** The whole content of one shard as it was at a version. */
final case class SnapshotRef(version: Long, lineage: UUID, section: SectionRef) extends Serializable

/** References needed to rebuild one shard: its snapshot, if there is one, and the later changes, oldest first. */
final case class ShardRefs(snapshot: Option[SnapshotRef], deltas: Vector[DeltaRef]) extends Serializable {

  /** UUID of the commit that last changed the shard, or [[ShardRefs.NeverWritten]]. */
  def lineage: UUID =
    if (deltas.nonEmpty) deltas.last.lineage else snapshot.fold(ShardRefs.NeverWritten)(_.lineage)

  /** All sections in the order in which they apply. */
  def sections: Vector[SectionRef] = snapshot.map(_.section).toVector ++ deltas.map(_.section)

  /** References to the content at a lineage; None if the lineage is not part of this history. */
  def upTo(lineage: UUID): Option[ShardRefs] = {
    val i = deltas.lastIndexWhere(_.lineage == lineage)
    if (i >= 0) Some(copy(deltas = deltas.take(i + 1)))
    else Option.when(snapshot.exists(_.lineage == lineage))(copy(deltas = Vector.empty))
  }

  /** The changes after a lineage, oldest first; None if the lineage is not part of this history. */
  def since(lineage: UUID): Option[Vector[DeltaRef]] = upTo(lineage).map(before => deltas.drop(before.deltas.size))

  /** The same content with a snapshot in place of the changes it covers; None if it is not part of this history. */
  def withSnapshot(s: SnapshotRef): Option[ShardRefs] = {
    val i = deltas.lastIndexWhere(d => d.lineage == s.lineage)
    if (i >= 0) Some(ShardRefs(Some(s), deltas.drop(i + 1))) else None
  }

  /** Adds `by` to the offset of the newest changes if these are in `container`. No other changes are in it. */
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
 * The state of a query after a batch. Of several generations of a batch's manifest, the newest is valid. Files to which
 * no retained manifest refers are not part of the state.
 *
 * @param baseGeneration
 *   Generation of the previous batch's manifest that this one is based on; -1 in the first batch
 * @param retainedFrom
 *   Oldest batch whose state is kept completely. Manifests of older batches may remain because their payloads are still
 *   needed, but the states that they describe can no longer be read
 * @param shardCount
 *   Number of base shards, S
 * @param stores
 *   References of each shard of each store. The store of an operator with a single partition has one shard, 0
 * @param pinSlots
 *   Pin slots of the stores that have any, as in a [[io.penstock.sharding.Layout]]
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

  /** Layout of a store. */
  def layout(store: StoreKey): Layout = Layout(shardCount, pinSlots.getOrElse(store, Vector.empty))

  /**
   * This manifest as it is read back after it was written with a body of `bodyLength` bytes: offsets of sections in its
   * own payload count from the start of the file.
   */
  def written(bodyLength: Int): Manifest = {
    val own = Container.InManifest(batchId, generation)
    val payloadAt = FileFormat.HeaderBytes.toLong + bodyLength
    copy(stores = stores.map { case (key, shards) => key -> shards.map(_.shifted(own, payloadAt)) })
  }

  /** Lineage of each shard of a store, as high and low bits; empty if the store does not exist. */
  def lineages(store: StoreKey): Array[Long] =
    stores.getOrElse(store, Vector.empty).iterator.map(_.lineage)
      .flatMap(l => Iterator(l.getMostSignificantBits, l.getLeastSignificantBits)).toArray

  def containers: Set[Container] = stores.valuesIterator.flatMap(_.iterator.flatMap(_.containers)).toSet
}
