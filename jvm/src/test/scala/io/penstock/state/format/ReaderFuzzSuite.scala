package io.penstock.state.format

import java.util.UUID

import scala.collection.immutable.SortedMap
import scala.util.Random

import org.apache.spark.sql.penstock.storage.QueryDescription
import org.apache.spark.unsafe.Platform

import io.penstock.Seed
import io.penstock.routing.RoutingVersion
import io.penstock.state.engine.{FamilyState, ShardState}
import io.penstock.state.format.Damage.Damaged
import org.scalatest.funsuite.AnyFunSuite

/**
 * Feeds damaged bytes to readers.
 *
 * With the writer's checksums intact, a reader returns what was written or fails. The error is PENSTOCK_CORRUPT_FILE,
 * or PENSTOCK_NEWER_FORMAT if the damage changed the version. With checksums adapted to the damage, a reader may also
 * return something else, because the damage can produce what another writer would have written. The result must then be
 * writable and read back as the same.
 */
class ReaderFuzzSuite extends AnyFunSuite with Fuzzing {
  private val random = new Random(Seed.value)

  /**
   * A kind of file.
   *
   * @param encode
   *   Encodes content as a body, from which the same content must be read again
   */
  final private class Subject[A](val name: String, val kind: Int, val body: Array[Byte], val payload: Array[Byte])(
      val decode: FileFormat.Body => A
  )(val encode: A => Array[Byte]) {
    val intact: Array[Byte] = FileFormat.frame(kind, body) ++ payload
    val content: A = read(intact)

    def read(file: Array[Byte]): A = {
      val body = new FileReader(name, new InMemory(file, random)).body(kind)
      FileFormat.reading(name, FileFormat.HeaderBytes)(decode(body))
    }
  }

  private def refs(shards: Int, own: Container): Vector[ShardRefs] = {
    val containers = Vector.tabulate(3)(b => Container.Changelog(b + 1L, uuid())) ++
      Seq(Container.Snapshots(3L, uuid()), Container.InManifest(2L, 1L))
    def section(c: Container) =
      SectionRef(c, if (c == own) 3L else 20L + random.nextInt(1 << 20), random.nextInt(1 << 14), random.nextInt())
    Vector.fill(shards) {
      val snapshot = Option.when(random.nextBoolean())(SnapshotRef(2L, uuid(), section(containers(3))))
      val deltas = Vector.tabulate(random.nextInt(3)) { i =>
        DeltaRef(3L + i, uuid(), section(containers(Seq(0, 1, 2, 4)(random.nextInt(4)))))
      }
      val last = Option.when(random.nextBoolean())(DeltaRef(6L, uuid(), section(own)))
      ShardRefs(snapshot, deltas ++ last)
    }
  }

  private def uuid(): UUID = new UUID(random.nextLong(), random.nextLong())

  private def manifest(name: String, shards: Int, stores: Seq[StoreKey]): Subject[Manifest] = {
    val own = Container.InManifest(5L, 1L)
    val written = Manifest(
      batchId = 5L,
      generation = 1L,
      baseGeneration = 0L,
      retainedFrom = 3L,
      runId = uuid(),
      writtenAtMs = 1_700_000_000_000L,
      shardCount = shards,
      stores = stores.map(s => s -> refs(if (s.operatorId == 9L) 1 else shards, own)).toMap
    )
    // Offsets into the own payload depend on the body's length, which may change: they are compared from its start.
    def decoded(body: Array[Byte]): Manifest = {
      val m = ManifestFormat.decode(body)
      def moved(s: SectionRef): SectionRef =
        if (s.container != Container.InManifest(m.batchId, m.generation)) s
        else s.copy(offset = s.offset - FileFormat.HeaderBytes - body.length)
      m.copy(stores = m.stores.map { case (key, shards) =>
        key -> shards.map { r =>
          ShardRefs(
            r.snapshot.map(s => s.copy(section = moved(s.section))),
            r.deltas.map(d => d.copy(section = moved(d.section)))
          )
        }
      })
    }
    def encoded(m: Manifest) = ManifestFormat.encode(m, Container.InManifest(m.batchId, m.generation))
    new Subject(name, FileFormat.Kind.Manifest, encoded(written), random.nextBytes(100))(body => decoded(body.bytes))(
      encoded
    )
  }

  private val routingVersion = RoutingVersion(3, 7, 256, SortedMap(0L -> 4, 2L -> 256, 7L -> 1))
  private val byCores = routingVersion.copy(number = 8, perCore = Set(0L, 7L))
  private def decodeRoutingVersion(body: FileFormat.Body) = RoutingVersion.decode(body.bytes, body.version)
  private val description = QueryDescription(256, "penstock, ünïcode", "4f0c")

  private val subjects: Seq[Subject[_]] = Seq(
    manifest("manifests/small", 2, Seq(StoreKey(0L, "default"))),
    manifest(
      "manifests/large",
      6,
      Seq(StoreKey(0L, "left-keyToNumValues"), StoreKey(1L, "ünïcode"), StoreKey(9L, "s"))
    ),
    new Subject(
      "epochs/7",
      FileFormat.Kind.RoutingVersion,
      RoutingVersion.encode(routingVersion),
      Array()
    )(decodeRoutingVersion)(RoutingVersion.encode),
    new Subject(
      "epochs/8",
      FileFormat.Kind.RoutingVersion,
      RoutingVersion.encode(byCores),
      Array()
    )(decodeRoutingVersion)(RoutingVersion.encode),
    new Subject("FORMAT", FileFormat.Kind.Format, description.encode, Array())(body =>
      QueryDescription.decode(body.bytes)
    )(_.encode)
  )

  private def original[A](s: Subject[A], file: Damaged): Unit = fuzz(s.name, file)(s.read) {
    case Right(content) => assert(content == s.content)
    case Left(e) if e.errorClass == "PENSTOCK_NEWER_FORMAT" =>
      val version = file.bytes(8) & 0xff | (file.bytes(9) & 0xff) << 8
      assert(version > FileFormat.version(s.kind) && e.detail.contains(s"${s.name} has format version $version"), e)
      assert(e.detail.contains(s"this Penstock reads ${FileFormat.version(s.kind)}"))
    case Left(e) => corrupt(e, s.name, 0L, file.bytes.length.toLong)
  }

  private def wellFormed[A](s: Subject[A], body: Damaged): Unit = {
    val file = Damaged(s"the body ${body.change}, sealed again", FileFormat.frame(s.kind, body.bytes) ++ s.payload)
    fuzz(s.name, file)(s.read) {
      case Right(content) =>
        val written = s.encode(content)
        assert(s.decode(FileFormat.Body(FileFormat.version(s.kind), written)) == content)
        // The tables of a manifest may hold unused entries, in any order. Everything else has only one form.
        if (s.kind != FileFormat.Kind.Manifest) assert(written.sameElements(body.bytes))
      case Left(e) => corrupt(e, s.name, FileFormat.HeaderBytes, FileFormat.HeaderBytes.toLong + body.bytes.length)
    }
  }

  private def fuzzTest(name: String)(body: => Unit): Unit = test(name) {
    info(s"seed ${Seed.value}")
    body
    info(s"${countedInputs()} inputs")
  }

  subjects.foreach { s =>
    fuzzTest(s"${s.name}: with the writer's checksums, reads return what was written or fail") {
      (Damage.truncated(s.intact) ++ Damage.flipped(s.intact)).foreach(original(s, _))
      (0 until 4000).foreach(_ => original(s, Damage.random(s.intact, random)))
      Damage.foreign(random).foreach(original(s, _))
      // Complete files of other kinds in its place.
      subjects.filter(_.kind != s.kind).foreach(o => original(s, Damaged(s"replaced by ${o.name}", o.intact)))
      // Lengths that no file has.
      Seq(1 << 16, 1 << 30, Int.MaxValue - 16, Int.MaxValue, -1, Int.MinValue).foreach { length =>
        val bytes = s.intact.clone()
        Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + 12L, length)
        original(s, Damaged(s"a body of $length bytes announced", bytes))
      }
    }

    fuzzTest(s"${s.name}: with adapted checksums, reads return writable content or fail") {
      (Damage.truncated(s.body) ++ Damage.flipped(s.body)).foreach(wellFormed(s, _))
      (0 until 8000).foreach(_ => wellFormed(s, Damage.random(s.body, random)))
      Damage.foreign(random).foreach(wellFormed(s, _))
      subjects.filter(_.kind != s.kind).foreach(o => wellFormed(s, Damaged(s"replaced by that of ${o.name}", o.body)))
    }
  }

  private val Hash = FamilyTraits(ordered = false, multiValued = false)
  private val Ranged = FamilyTraits(ordered = true, multiValued = false)
  private val HashList = FamilyTraits(ordered = false, multiValued = true)
  private val RangeList = FamilyTraits(ordered = true, multiValued = true)

  private def section(changes: ChangeSet.Writer => Unit): Array[Byte] = {
    val out = new ByteSink
    val writer = new ChangeSet.Writer(out)
    changes(writer)
    writer.finish()
    out.toByteArray
  }

  private def list(values: Array[Byte]*): Array[Byte] = {
    val out = new ByteSink
    values.foreach(v => FamilyState.writeValue(out, v, Platform.BYTE_ARRAY_OFFSET, v.length))
    out.toByteArray
  }

  private def key(n: Int): Array[Byte] = s"key-$n".getBytes

  private def fill(w: ChangeSet.Writer, keys: Range): Unit = {
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    def put(n: Int, value: Array[Byte]): Unit = w.put(key(n), at, key(n).length, value, at, value.length)
    Seq("hash" -> Hash, "range" -> Ranged).foreach { case (name, traits) =>
      w.family(name, traits)
      keys.foreach(n => put(n, random.nextBytes(random.nextInt(12))))
    }
    Seq("lists" -> HashList, "ranged lists" -> RangeList).foreach { case (name, traits) =>
      w.family(name, traits)
      keys.foreach(n => put(n, list(Seq.fill(random.nextInt(4))(random.nextBytes(random.nextInt(9))): _*)))
    }
  }

  private val before = {
    val shard = new ShardState
    val puts = section { w =>
      w.family("dropped", Hash)
      w.put(key(0), Platform.BYTE_ARRAY_OFFSET, 5, key(0), Platform.BYTE_ARRAY_OFFSET, 5)
      fill(w, 0 until 6)
    }
    shard(puts, 0, puts.length)
    shard
  }

  private val image = {
    val out = new ByteSink
    before.image.writeTo(out)
    out.toByteArray
  }

  private val changes = section { w =>
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    w.removeFamily("dropped")
    fill(w, 3 until 8)
    w.remove(key(1), at, 5)
    Seq(2, 9).foreach { n =>
      val value = list(random.nextBytes(5), Array())
      w.append(key(n), at, 5, value, at, value.length)
    }
    w.family("dropped", Ranged)
    w.put(key(4), at, 5, key(4), at, 5)
  }

  /** The shard after snapshot and change set. The change set lies between other bytes that must not be read. */
  private def applied(second: Array[Byte], before: Array[Byte], after: Array[Byte]): ShardState = {
    val shard = Contents.ofImage(image)
    FileFormat.reading("changelogs/8", 1000L)(shard(before ++ second ++ after, before.length, second.length))
    shard
  }

  private def changeSet(input: Damaged): Unit = {
    def surrounded(bytes: Array[Byte]) = applied(bytes, random.nextBytes(random.nextInt(9)), random.nextBytes(64))
    fuzz("a change set", input)(applied(_, Array(), Array())) {
      case Right(shard) =>
        val content = Contents.of(shard)
        assert(Contents.rewritten(shard) == content)
        assert(Contents.of(surrounded(input.bytes)) == content)
      case Left(e) =>
        corrupt(e, "changelogs/8", 1000L, 1000L + input.bytes.length)
        assert(outcome(surrounded(input.bytes)).left.toOption.map(_.detail).contains(e.detail))
    }
  }

  fuzzTest("change sets: reads return writable content or fail, and never use surrounding bytes") {
    assert(Contents.of(applied(changes, Array(), Array())).keySet.size == 5)
    (Damage.truncated(changes) ++ Damage.flipped(changes)).foreach(changeSet)
    (0 until 25000).foreach(_ => changeSet(Damage.random(changes, random)))
    Damage.foreign(random).foreach(changeSet)
    // The values of a list are checked only once, when they are read, so every length must be checked then.
    val lists = section { w =>
      w.family("lists", HashList)
      val value = list(key(1), key(2), key(3))
      w.put(key(0), Platform.BYTE_ARRAY_OFFSET, 5, value, Platform.BYTE_ARRAY_OFFSET, value.length)
    }
    (0 until 10000).foreach(_ => changeSet(Damage.random(lists, random)))
  }

  fuzzTest("images: reads return writable content or fail") {
    assert(Contents.of(Contents.ofImage(image)) == Contents.of(before))
    def read(input: Damaged): Unit = fuzz("an image", input)(Contents.ofImage) {
      case Right(shard) => assert(Contents.rewritten(shard) == Contents.of(shard))
      case Left(e) => corrupt(e, "snapshots/8-00000000-0000-0000-0000-000000000008", 0L, input.bytes.length.toLong)
    }
    (Damage.truncated(image) ++ Damage.flipped(image)).foreach(read)
    (0 until 25000).foreach(_ => read(Damage.random(image, random)))
    Damage.foreign(random).foreach(read)
  }
}
