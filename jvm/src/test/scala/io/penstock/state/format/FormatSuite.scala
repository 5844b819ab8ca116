package io.penstock.state.format

import java.util.UUID

import scala.util.Random

import io.penstock.PropertyChecks
import io.penstock.sharding.{Layout, Layouts}
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

/** Files read back as they were written. */
class FormatSuite extends AnyFunSuite with PropertyChecks {

  private val snapshots: Gen[Container] =
    Gen.zip(Gen.choose(0L, 1L << 40), Gen.uuid).map { case (v, u) => Container.Snapshots(v, u) }
  private val changes: Gen[Container] = Gen.oneOf(
    Gen.zip(Gen.choose(0L, 1L << 40), Gen.uuid).map { case (b, u) => Container.Changelog(b, u) },
    Gen.zip(Gen.choose(0L, 50L), Gen.choose(0L, 3L)).map { case (b, g) => Container.InManifest(b, g) }
  )
  private def section(container: Gen[Container]): Gen[SectionRef] =
    Gen.zip(container, Gen.choose(20L, 1L << 45), Gen.choose(0, 1 << 30), Gen.choose(Int.MinValue, Int.MaxValue)).map {
      case (c, o, l, crc) => SectionRef(c, o, l, crc)
    }
  private val delta: Gen[DeltaRef] =
    Gen.zip(Gen.choose(1L, 1L << 40), Gen.uuid, section(changes)).map { case (v, u, s) => DeltaRef(v, u, s) }
  private val shard: Gen[ShardRefs] = for {
    s <- Gen.option(
      Gen.zip(Gen.choose(1L, 1L << 40), Gen.uuid, section(snapshots)).map { case (v, u, r) => SnapshotRef(v, u, r) }
    )
    n <- Gen.choose(0, 4)
    d <- Gen.listOfN(n, delta)
  } yield ShardRefs(s, d.toVector)
  private val manifest: Gen[Manifest] = for {
    batch <- Gen.choose(0L, 1L << 40)
    generation <- Gen.choose(0L, 9L)
    base <- Gen.choose(-1L, 9L)
    retained <- Gen.choose(0L, batch)
    run <- Gen.uuid
    shards <- Gen.choose(1, 9)
    layout <- Layouts.pinned.map(Layout(shards).pinning)
    stores <- Gen.mapOf(
      Gen.zip(
        Gen.zip(Gen.choose(0L, 9L), Gen.oneOf("default", "left-keyToNumValues", "ünïcode")).map { case (o, n) =>
          StoreKey(o, n)
        },
        Gen.listOfN(layout.shards, shard).map(_.toVector)
      )
    )
    pinSlots = stores.keys.map(_ -> layout.pinSlots).filter(_._2.nonEmpty).toMap
  } yield Manifest(batch, generation, base, retained, run, 17L, shards, stores, pinSlots)

  test("a manifest reads back as it was written") {
    check(Prop.forAll(manifest) { m =>
      val own = Container.InManifest(m.batchId, m.generation)
      val body = ManifestFormat.encode(m, own)
      // Sections in the manifest's own payload are read with offsets from the start of the file.
      val shift = FileFormat.HeaderBytes + body.length
      def moved(s: SectionRef) = if (s.container == own) s.copy(offset = s.offset + shift) else s
      val expected = m.copy(stores = m.stores.map { case (k, v) =>
        k -> v.map(r =>
          ShardRefs(
            r.snapshot.map(s => s.copy(section = moved(s.section))),
            r.deltas.map(d => d.copy(section = moved(d.section)))
          )
        )
      })
      ManifestFormat.decode(body) == expected
    })
  }

  test("a manifest that contradicts itself is rejected at the position of the contradiction") {
    def body(m: Manifest): Array[Byte] = ManifestFormat.encode(m, Container.InManifest(m.batchId, m.generation))
    def refused(body: Array[Byte]): String = intercept[MalformedData](ManifestFormat.decode(body)).getMessage
    val m = Manifest(1L, 0L, 0L, 0L, new UUID(0, 1), 17L, 2, Map.empty)
    def stores(names: String*)(shards: ShardRefs*) =
      m.copy(stores = names.map(n => StoreKey(0L, n) -> shards.toVector).toMap)
    val empty = ShardRefs.Empty
    val head = body(m).length
    val two = body(stores("a", "b")(empty, empty))
    ManifestFormat.decode(two)
    assert(refused(two.updated(
      two.indexOf('b'.toByte, head),
      'a'.toByte
    )).contains(s"is listed twice, at byte ${head + 9}"))
    assert(refused(body(stores("a")(empty, empty, empty))).contains(s"at byte ${head + 4}"))
    assert(refused(body(stores("a")())).contains(s"has 0 of 2 shards, at byte ${head + 4}"))
    val inHeader = SectionRef(Container.InManifest(0L, 0L), FileFormat.HeaderBytes - 1L, 9, 0)
    val delta = empty.copy(deltas = Vector(DeltaRef(1L, new UUID(0, 2), inHeader)))
    assert(refused(body(stores("a")(delta, empty))).contains("offset of a section is 19"))
  }

  test("the bytes of a section table match the specification") {
    val sections = Seq(Section(StoreKey(1, "a"), 3, 0, 10, -7), Section(StoreKey(2, "bc"), 255, 10, 300, 9))
    assert(
      SectionTable.encode(sections).map(b => f"$b%02x").mkString(" ") ==
        "02 01 01 61 03 00 0a f9 ff ff ff 02 02 62 63 ff 01 0a ac 02 09 00 00 00"
    )
  }

  test("a change set is applied in the order in which it was written") {
    val out = new ByteSink
    val w = new ChangeSet.Writer(out)
    def bytes(s: String) = s.getBytes("UTF-8")
    val at = org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET.toLong
    w.removeFamily("old")
    w.family("f", FamilyTraits(ordered = true, multiValued = false), moved = true)
    w.put(bytes("k"), at, 1, bytes("old"), at, 3)
    w.family("f", FamilyTraits(ordered = true, multiValued = false))
    w.put(bytes("k"), at, 1, bytes("value"), at, 5)
    w.remove(bytes("gone"), at, 4)
    w.family("m", FamilyTraits(ordered = false, multiValued = true))
    w.append(bytes("k2"), at, 2, bytes("\u0002\u0000\u0000\u0000vv"), at, 6)
    val length = w.finish()
    class Log extends ChangeSink {
      val lines = Vector.newBuilder[String]
      private def text(b: AnyRef, a: Long, n: Int) = new String(b.asInstanceOf[Array[Byte]], (a - at).toInt, n)
      override def removeFamily(name: String): Unit = lines += s"drop $name"
      override def family(name: String, t: FamilyTraits, moved: Boolean): FamilyChangeSink = new FamilyChangeSink {
        override def put(k: AnyRef, ka: Long, kn: Int, v: AnyRef, va: Long, vn: Int): Unit =
          lines += s"$name ${if (moved) "move" else "put"} ${text(k, ka, kn)}=${text(v, va, vn)} $t"
        override def append(k: AnyRef, ka: Long, kn: Int, v: AnyRef, va: Long, vn: Int): Unit =
          lines += s"$name append ${text(k, ka, kn)}=${text(v, va, vn)} $t"
        override def remove(k: AnyRef, ka: Long, kn: Int): Unit = lines += s"$name remove ${text(k, ka, kn)}"
      }
    }
    val log = new Log
    ChangeSet.read(out.array, 0, length, log)
    assert(
      log.lines.result() === Seq(
        "drop old",
        "f move k=old FamilyTraits(true,false)",
        "f put k=value FamilyTraits(true,false)",
        "f remove gone",
        "m append k2=\u0002\u0000\u0000\u0000vv FamilyTraits(false,true)"
      )
    )
  }

  test("under random histories of two runs, a batch's base and the files it may name are never garbage") {
    val key = StoreKey(0, "default")
    val r = new Random(17)
    (0 until 200).foreach { _ =>
      val minBatches = 1 + r.nextInt(5)
      var manifests = Map.empty[(Long, Long), Manifest]
      var files = Map.empty[String, Reachability.Listed]
      var late = Vector.empty[(SnapshotRef, Int)]
      def listed(c: Container, batch: Long): Unit = files += c.path -> Reachability.Listed(c.path, batch)
      (0L until 5L + r.nextInt(30)).foreach { b =>
        (0L to r.nextInt(3).toLong).foreach { generation =>
          // Two runs are active: a batch may build on any generation of the batch before.
          val bases = manifests.keys.filter(_._1 == b - 1).toSeq.sorted
          val baseGeneration = if (bases.isEmpty) -1L else bases(r.nextInt(bases.size))._2
          val base = manifests.get((b - 1, baseGeneration)).fold(Vector.fill(4)(ShardRefs.Empty))(_.stores(key))
          base.zipWithIndex.foreach { case (s, shard) =>
            if (r.nextInt(6) == 0 && s.deltas.nonEmpty) {
              val file = Container.Snapshots(b, new UUID(r.nextLong(), r.nextLong()))
              listed(file, b)
              late :+= ((SnapshotRef(b, s.lineage, SectionRef(file, 0, 1, 0)), shard))
            }
          }
          // Some snapshots are announced at once, some much later.
          val (announced, waiting) = late.partition(_ => r.nextInt(3) == 0)
          late = waiting
          val named = announced.filter(a => Reachability.mayName(a._1.section.container, b, minBatches))
          val log = Container.Changelog(b, new UUID(r.nextLong(), r.nextLong()))
          listed(log, b)
          val shards = base.zipWithIndex.map { case (s, shard) =>
            val kept = named.filter(_._2 == shard).foldLeft(s)((s, a) => s.withSnapshot(a._1).getOrElse(s))
            if (r.nextInt(3) == 0) kept
            else kept.copy(deltas = kept.deltas :+ DeltaRef(b + 1, log.uuid, SectionRef(log, 0, 1, 0)))
          }
          val oldest = Reachability.oldestRetained(b, minBatches)
          val manifest = Manifest(b, generation, baseGeneration, oldest, log.uuid, 0L, 4, Map(key -> shards))
          manifests += (b, generation) -> manifest
          listed(Container.InManifest(b, generation), b)
        }
        def there = manifests.keys.filter(k => files.contains(Container.InManifest(k._1, k._2).path)).toSeq
        // The cleaner looks now, or has looked when the batch before was the newest.
        val newest = b - r.nextInt(2)
        val keep = Reachability.retained(there, newest, minBatches)
        val needed = keep.flatMap(k => manifests(k).containers).toSet
        val deleted = Reachability.garbage(files.values.toSeq, keep, needed).map(_.path).toSet
        files --= deleted
        val oldest = math.max(0L, newest - minBatches - 1L)
        assert(keep.map(_._1).toSet.filter(_ > oldest) === (oldest + 1 to b).toSet)
        keep.foreach { k =>
          assert(files.contains(Container.InManifest(k._1, k._2).path))
          manifests(k).containers.foreach(c => assert(files.contains(c.path), s"$c, which manifest $k names"))
        }
        manifests.keys.filter(_._1 > oldest).foreach(k => assert(keep.contains(k)))
        val retained = manifests.valuesIterator.filter(_.batchId == b).map(_.retainedFrom).max
        manifests.keys.filter(_._1 >= retained).foreach(k => assert(keep.contains(k), s"retained from $retained on"))
        files.values.foreach(f => assert(f.batchId >= keep.head._1 || needed.exists(_.path == f.path)))
      }
    }
  }
}
