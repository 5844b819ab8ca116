package io.penstock.state.format

import java.util.UUID

import scala.collection.mutable

/** Encoding of the body of a manifest. Specified in docs/PROTOCOL.md, "Manifest". */
object ManifestFormat {
  private val Changelog = 1
  private val Snapshots = 2
  private val InManifest = 3

  /**
   * Encodes a manifest. Offsets of sections in the manifest's own payload count from the start of the payload, because
   * the length of the body is not known in advance.
   *
   * @param own
   *   The payload of this manifest as a container. Offsets of its sections in `m` count from the start of the payload
   */
  def encode(m: Manifest, own: Container.InManifest): Array[Byte] = {
    val out = new ByteSink(4096)
    out.putVarint(m.batchId)
    out.putVarint(m.generation)
    out.putVarint(m.baseGeneration + 1)
    out.putVarint(m.retainedFrom)
    out.putUuid(m.runId)
    out.putLong(m.writtenAtMs)
    out.putVarint(m.shardCount)
    val containers = new Table[Container]
    val lineages = new Table[UUID]
    m.stores.valuesIterator.foreach(_.foreach { r =>
      r.snapshot.foreach { s =>
        containers.add(s.section.container)
        lineages.add(s.lineage)
      }
      r.deltas.foreach { d =>
        containers.add(d.section.container)
        lineages.add(d.lineage)
      }
    })
    out.putVarint(containers.size)
    containers.foreach {
      case Container.Changelog(b, u) => out.putByte(Changelog); out.putVarint(b); out.putUuid(u)
      case Container.Snapshots(v, u) => out.putByte(Snapshots); out.putVarint(v); out.putUuid(u)
      case Container.InManifest(b, g) => out.putByte(InManifest); out.putVarint(b); out.putVarint(g)
    }
    out.putVarint(lineages.size)
    lineages.foreach(out.putUuid)
    def section(s: SectionRef): Unit = {
      out.putVarint(containers.indexOf(s.container))
      out.putVarint(s.offset)
      out.putVarint(s.length)
      out.putInt(s.crc)
    }
    out.putVarint(m.stores.size)
    m.stores.toSeq.sortBy(s => (s._1.operatorId, s._1.storeName)).foreach { case (key, shards) =>
      StoreKey.put(out, key)
      PinSlots.put(out, m.layout(key).pinSlots)
      out.putVarint(shards.size)
      shards.foreach { r =>
        out.putByte(if (r.snapshot.isDefined) 1 else 0)
        r.snapshot.foreach { s =>
          out.putVarint(s.version)
          out.putVarint(lineages.indexOf(s.lineage))
          section(s.section)
        }
        out.putVarint(r.deltas.size)
        r.deltas.foreach { d =>
          out.putVarint(d.version)
          out.putVarint(lineages.indexOf(d.lineage))
          section(d.section)
        }
      }
    }
    require(own.batchId == m.batchId && own.generation == m.generation, "`own` must be the payload of the manifest")
    out.toByteArray
  }

  /**
   * Decodes a body. Offsets of sections in the manifest's own payload then count from the start of the file.
   *
   * @throws MalformedData
   *   If the bytes do not follow the format
   */
  def decode(body: Array[Byte]): Manifest = {
    val in = new ByteSource(body)
    val batchId = in.getVarint()
    val generation = in.getVarint()
    val baseGeneration = in.getVarint() - 1
    val retainedFrom = in.getNumber("oldest retained batch", 0L, batchId)
    val runId = in.getUuid()
    val writtenAtMs = in.getLong()
    val shardCount = in.getNumber("number of shards", 1L, FileFormat.MaxShards).toInt
    val own = Container.InManifest(batchId, generation)
    val payloadAt = FileFormat.HeaderBytes.toLong + body.length
    val containers = Array.fill[Container](in.getCount("number of containers", in.remaining / 3)) {
      val at = in.consumed
      in.getByte() match {
        case Changelog => Container.Changelog(in.getVarint(), in.getUuid())
        case Snapshots => Container.Snapshots(in.getVarint(), in.getUuid())
        case InManifest => Container.InManifest(in.getVarint(), in.getVarint())
        case k => throw new MalformedData(s"unknown kind of container $k", at)
      }
    }
    val lineages = Array.fill(in.getCount("number of lineages", in.remaining / 16))(in.getUuid())
    def pick[A](table: Array[A], name: String): A = table(in.getNumber(name, 0L, table.length - 1L).toInt)
    def section(ofSnapshot: Boolean): SectionRef = {
      val at = in.consumed
      val c = pick(containers, "index of a container")
      if (c.isInstanceOf[Container.Snapshots] != ofSnapshot) {
        throw new MalformedData(s"${c.path} does not hold ${if (ofSnapshot) "snapshots" else "changes"}", at)
      }
      val offset =
        if (c == own) payloadAt + in.getNumber("offset of a section", 0L, Long.MaxValue - payloadAt)
        else in.getNumber("offset of a section", FileFormat.HeaderBytes, Long.MaxValue)
      SectionRef(c, offset, in.getCount("length of a section", FileFormat.MaxBytes), in.getInt())
    }
    var stores = Map.empty[StoreKey, Vector[ShardRefs]]
    var pinSlots = Map.empty[StoreKey, Vector[Option[Int]]]
    (0 until in.getCount("number of stores", in.remaining)).foreach { _ =>
      val storeAt = in.consumed
      val key = StoreKey(in.getVarint(), in.getString())
      if (stores.contains(key)) throw new MalformedData(s"$key is listed twice", storeAt)
      val pinned = PinSlots.get(in)
      if (pinned.nonEmpty) pinSlots += key -> pinned
      val countAt = in.consumed
      val expected = shardCount + pinned.size
      val count = in.getCount("number of shards of a store", expected)
      if (count != expected && (count != 1 || pinned.nonEmpty)) {
        throw new MalformedData(s"$key has $count of $expected shards", countAt)
      }
      stores += key -> Vector.fill(count) {
        val at = in.consumed
        val snapshot = in.getByte() match {
          case 0 => None
          case 1 => Some(SnapshotRef(in.getVarint(), pick(lineages, "index of a lineage"), section(ofSnapshot = true)))
          case f => throw new MalformedData(s"unknown flag $f of a shard", at)
        }
        val deltas = Vector.fill(in.getCount("number of deltas", in.remaining)) {
          DeltaRef(in.getVarint(), pick(lineages, "index of a lineage"), section(ofSnapshot = false))
        }
        ShardRefs(snapshot, deltas)
      }
    }
    in.expectEnd("store")
    Manifest(batchId, generation, baseGeneration, retainedFrom, runId, writtenAtMs, shardCount, stores, pinSlots)
  }

  /**
   * Distinct values with their index. Nearly every value is found by identity, because all shards that a commit changed
   * share its container and its lineage.
   */
  final private class Table[A <: AnyRef] {
    private val index = mutable.LinkedHashMap[A, Int]()
    private val byIdentity = new java.util.IdentityHashMap[A, Integer]()
    def add(a: A): Unit =
      if (!byIdentity.containsKey(a)) byIdentity.put(a, index.getOrElseUpdate(a, index.size)): Unit
    def indexOf(a: A): Int = byIdentity.get(a)
    def size: Int = index.size
    def foreach(f: A => Unit): Unit = index.keysIterator.foreach(f)
  }
}
