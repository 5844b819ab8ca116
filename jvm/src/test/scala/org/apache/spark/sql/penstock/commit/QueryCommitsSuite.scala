package org.apache.spark.sql.penstock.commit

import java.nio.file.{Files, Path}
import java.util.UUID

import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.state.{ShardHistory, ShardLoader, StateDirectory}
import org.apache.spark.unsafe.Platform

import io.penstock.errors.PenstockException
import io.penstock.faults.{Fault, FaultPlan, FaultyCheckpointFileManager}
import io.penstock.state.engine.KeyBytes
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite

/** The commit protocol on real files: which attempts count, what is durable when, and what is refused. */
class QueryCommitsSuite extends AnyFunSuite {
  private val shardCount = 4
  private val store = StoreKey(0L, "default")
  private val region = RegionSpec(0L, single = false, Seq(OperatorLease(0L, OperatorKind.WholeKey, Seq("default"))))
  private val hadoop = new Configuration()
  hadoop.set("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")

  private def root(): String = Files.createTempDirectory("penstock-commit").resolve("state").toString
  private def commits(root: String, shards: Int = shardCount, faults: Seq[String] = Nil, minBatches: Int = 100) = {
    val conf = new Configuration(hadoop)
    conf.setInt("spark.sql.streaming.minBatchesToRetain", minBatches)
    if (faults.nonEmpty) {
      conf.set(FaultyCheckpointFileManager.DelegateKey, conf.get(FaultyCheckpointFileManager.ClassKey))
      conf.set(FaultyCheckpointFileManager.ClassKey, classOf[FaultyCheckpointFileManager].getName)
      FaultPlan.settings(faults.map(Fault.parse), Files.createTempDirectory("penstock-strikes")).foreach {
        case (key, value) => conf.set(key, value)
      }
    }
    new QueryCommits(UUID.randomUUID(), root, shards, conf)
  }
  private def open(c: QueryCommits, batch: Long): RegionLease =
    c.open(BatchSpec(c.runId, c.stateRoot, batch, shardCount, Seq(region)))(0L)

  /** An attempt that puts one key into each of its shards, inline or in a changelog of its own. */
  private def commit(c: QueryCommits, batch: Long, shards: Seq[Int], text: String, inline: Boolean = true): UUID = {
    val lineage = UUID.randomUUID()
    val out = new ByteSink
    val w = new ChangeSet.Writer(out)
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    val sections = shards.map { s =>
      val start = out.size
      w.family("default", FamilyTraits(ordered = false, multiValued = false))
      val k = s"k$batch".getBytes
      val v = s"$text-$s".getBytes
      w.put(k, at, k.length, v, at, v.length)
      val n = w.finish()
      Section(store, s, start, n, FileFormat.crc(out.array, start, n))
    }
    val payloadAt =
      if (inline) 0L
      else {
        val body = SectionTable.encode(sections)
        new StateDirectory(c.stateRoot, hadoop).write(
          Container.Changelog(batch, lineage).path,
          FileFormat.Kind.Changelog,
          body,
          out.array,
          out.size
        )
        FileFormat.HeaderBytes.toLong + body.length
      }
    c.committed(
      TaskCommitted(
        c.runId,
        batch,
        0L,
        s"executor_h_$text",
        lineage,
        if (inline) out.toByteArray else null,
        payloadAt,
        Seq(StoreCommit(store, shards.toArray, sections.toArray))
      )
    )
    lineage
  }

  private def content(root: String, batch: Long): Seq[Map[String, String]] = {
    val d = new StateDirectory(root, hadoop)
    val m = d.readManifest(batch, d.newestGenerations()(batch))
    val out = Array.fill(shardCount)(Map.empty[String, String])
    new ShardLoader(d).load(m, store, 0 until shardCount) { (s, l) =>
      val t = l.content.familyOrNull("default")
      if (t != null) {
        out(s) = (0L to batch).flatMap { b =>
          val ref = t.table.find(new KeyBytes().set(s"k$b".getBytes))
          if (ref < 0) None
          else {
            val at = (t.table.valueAt(ref) - Platform.BYTE_ARRAY_OFFSET).toInt
            Some(s"k$b" -> new String(t.table.page(ref), at, t.table.valueLength(ref)))
          }
        }.toMap
      }
    }
    out.toSeq
  }

  private def manifests(root: String): Seq[String] = {
    val d = Path.of(root, "_penstock", "manifests")
    if (!Files.exists(d)) Nil else d.toFile.list.toSeq.filterNot(_.startsWith(".")).sorted
  }

  test("a batch is durable with its last commit, not before") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1), "a")
    assert(manifests(c.stateRoot).isEmpty)
    commit(c, 0, Seq(2, 3), "b", inline = false)
    assert(manifests(c.stateRoot) === Seq("0.0"))
    assert(content(c.stateRoot, 0) === Seq("a-0", "a-1", "b-2", "b-3").map(v => Map("k0" -> v)))
  }

  test("a later attempt takes the place of an earlier one, before and after the manifest") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1), "first")
    commit(c, 0, Seq(0, 1), "second")
    commit(c, 0, Seq(2, 3), "other")
    assert(content(c.stateRoot, 0).map(_("k0")) === Seq("second-0", "second-1", "other-2", "other-3"))
    val lineage = commit(c, 0, Seq(0, 1), "third", inline = false)
    assert(manifests(c.stateRoot) === Seq("0.0", "0.1"))
    assert(content(c.stateRoot, 0).map(_("k0")) === Seq("third-0", "third-1", "other-2", "other-3"))
    val next = open(c, 1).base
    assert(next.generation === 1)
    assert(new UUID(next.lineages((0L, "default"))(0), next.lineages((0L, "default"))(1)) === lineage)
  }

  test("an attempt of a batch that is over is refused and changes nothing") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    open(c, 1)
    val e = intercept[PenstockException](commit(c, 0, 0 until 4, "zombie"))
    assert(e.errorClass === "PENSTOCK_BATCH_CLOSED")
    assert(content(c.stateRoot, 0).map(_("k0")) === (0 until 4).map(s => s"a-$s"))
  }

  test("a batch that ended incomplete stops the query and says what to do") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1, 2), "a")
    val e = intercept[PenstockException](open(c, 1))
    assert(e.errorClass === "PENSTOCK_STATE_INCOMPLETE")
    assert(e.getMessage.contains("1 of 4 shards of operator 0") && e.getMessage.contains("remove commits/0"))
  }

  test("a new run goes on from the newest generation; a batch that is run again gets a higher one") {
    val at = root()
    val first = commits(at)
    open(first, 0)
    commit(first, 0, 0 until 4, "a")
    open(first, 1)
    commit(first, 1, 0 until 4, "lost", inline = false)
    val second = commits(at)
    open(second, 1)
    commit(second, 1, 0 until 2, "again", inline = false)
    commit(second, 1, 2 until 4, "again")
    assert(manifests(at) === Seq("0.0", "1.0", "1.1"))
    assert(content(at, 1).map(_("k1")) === (0 until 4).map(s => s"again-$s"))
    assert(content(at, 1).map(_("k0")) === (0 until 4).map(s => s"a-$s"))
  }

  test(
    "of two runs of one query at the same time the second to finish a batch is stopped, and nothing is overwritten"
  ) {
    val at = root()
    val first = commits(at)
    val second = commits(at)
    Seq(first, second).foreach(open(_, 0))
    commit(first, 0, 0 until 4, "first")
    val e = intercept[PenstockException](commit(second, 0, 0 until 4, "second"))
    assert(e.errorClass === "PENSTOCK_CONCURRENT_RUN" && e.getMessage.contains("0.0"))
    assert(content(at, 0).map(_("k0")) === (0 until 4).map(s => s"first-$s"))
  }

  test("a run goes on from its own generation, whatever another run writes of the same batch meanwhile") {
    val at = root()
    val first = commits(at)
    open(first, 0)
    commit(first, 0, 0 until 4, "a")
    val second = commits(at)
    open(second, 0)
    commit(second, 0, 0 until 4, "a")
    open(first, 1)
    commit(first, 1, 0 until 4, "b")
    assert(manifests(at) === Seq("0.0", "0.1", "1.0"))
    val history = new ShardHistory(new StateDirectory(at, hadoop), store, 2, end = 2)
    val d = new StateDirectory(at, hadoop)
    assert(d.readManifest(1, 0).baseGeneration === 0L)
    val keys = history.replay(0, 2).familyOrNull("default").table
    assert(Seq("k0", "k1").forall(k => keys.find(new KeyBytes().set(k.getBytes)) >= 0))
    new StateCleaner(d, minBatches = 1).clean(1L)
    assert(manifests(at) === Seq("0.0", "0.1", "1.0"))
  }

  test(
    "a manifest that cannot be written, or is reported so, fails the attempt; the next one makes the batch durable"
  ) {
    val at = root()
    val c = commits(
      at,
      faults = Seq("publish manifests/0 fail", "published manifests/1 fail", "published manifests/2 exists")
    )
    open(c, 0)
    commit(c, 0, Seq(0, 1), "a")
    val full = intercept[PenstockException](commit(c, 0, Seq(2, 3), "lost"))
    assert(full.errorClass === "PENSTOCK_CANNOT_WRITE" && full.detail.contains("manifests/0.0"))
    assert(manifests(at).isEmpty)
    commit(c, 0, Seq(2, 3), "b")
    open(c, 1)
    intercept[PenstockException](commit(c, 1, 0 until 4, "reported as lost"))
    commit(c, 1, 0 until 4, "c")
    open(c, 2)
    commit(c, 2, 0 until 4, "d")
    assert(manifests(at) === Seq("0.1", "1.0", "1.1", "2.0"))
    assert(content(at, 2)(2) === Map("k0" -> "b-2", "k1" -> "c-2", "k2" -> "d-2"))
    assert(new StateDirectory(at, hadoop).readManifest(2, 0).baseGeneration === 1L)
  }

  test("another number of shards and a missing manifest are refused") {
    val at = root()
    val c = commits(at)
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    val other = commits(at, shards = 8)
    val e = intercept[PenstockException](
      other.open(BatchSpec(other.runId, at, 1L, 8, Seq(region)))
    )
    assert(e.errorClass === "PENSTOCK_SHARDS_CHANGED" && e.getMessage.contains("spark.penstock.shards=4"))
    val gap = intercept[PenstockException](open(commits(at), 7))
    assert(gap.errorClass === "PENSTOCK_STATE_MISSING" && gap.getMessage.contains("no manifest of that batch"))
  }

  test("a manifest that does not fit the query is refused before a task runs") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    val m = new StateDirectory(c.stateRoot, hadoop).readManifest(0, 0)
    def refused(m: Manifest): PenstockException = {
      val body = ManifestFormat.encode(m, Container.InManifest(0, 0))
      val file = Path.of(c.stateRoot, "_penstock", "manifests", "0.0")
      Files.write(file, FileFormat.frame(FileFormat.Kind.Manifest, body))
      intercept[PenstockException](open(commits(c.stateRoot), 1))
    }
    val shards = refused(m.copy(shardCount = 8, stores = Map(store -> Vector.fill(8)(ShardRefs.Empty))))
    assert(shards.errorClass === "PENSTOCK_CORRUPT_FILE" && shards.detail.contains("manifests/0.0"))
    val single = refused(m.copy(stores = Map(store -> Vector(ShardRefs.Empty))))
    assert(single.errorClass === "PENSTOCK_STATE_MISSING" && single.detail.contains("1 of 4 shards in store default"))
  }

  test("a snapshot of the state's history shortens the chain; one of an attempt that lost does not") {
    val c = commits(root())
    (0L until 5L).foreach { b =>
      open(c, b)
      commit(c, b, 0 until 4, s"v$b")
    }
    open(c, 5)
    val d = new StateDirectory(c.stateRoot, hadoop)
    val before = d.readManifest(4, 0).stores(store)
    val out = new ByteSink
    var loaded: ShardLoader => Unit = null
    loaded = l => l.load(d.readManifest(4, 0), store, Seq(1))((_, x) => x.content.writeTo(out): Unit)
    loaded(new ShardLoader(d))
    val file = Container.Snapshots(5, UUID.randomUUID())
    def entry(shard: Int, lineage: UUID) =
      SnapshotEntry(5L, lineage, Section(store, shard, 0, out.size, FileFormat.crc(out.array, 0, out.size)))
    val entries = Seq(entry(1, before(1).lineage), entry(2, UUID.randomUUID()))
    val body = SectionTable.encode(entries.map(_.section))
    d.write(file.path, FileFormat.Kind.Snapshots, body, out.array, out.size)
    c.snapshotsWritten(SnapshotsWritten(c.runId, file, FileFormat.HeaderBytes.toLong + body.length, entries))
    commit(c, 5, 0 until 4, "v5")
    val after = d.readManifest(5, 0).stores(store)
    assert(after(1).snapshot.map(_.section.container) === Some(file) && after(1).deltas.size === 1)
    assert(after(2).snapshot.isEmpty && after(2).deltas.size === 6)
    assert(content(c.stateRoot, 5)(1) === (0 to 5).map(b => s"k$b" -> s"v$b-1").toMap)
    val expected = content(c.stateRoot, 5)
    val path = Path.of(c.stateRoot, "_penstock", file.path)
    val intact = Files.readAllBytes(path)
    Files.write(path, intact.updated(intact.length - 1, (intact.last ^ 1).toByte))
    assert(content(c.stateRoot, 5) === expected)
    Files.delete(path)
    assert(content(c.stateRoot, 5) === expected)
    // Without the manifests that name the changes there is no way around.
    val manifest = Path.of(c.stateRoot, "_penstock", "manifests", "4.0")
    val aside = Files.move(manifest, manifest.resolveSibling(".4.0.aside"))
    val lost = intercept[PenstockException](new ShardLoader(d).loadOne(d.readManifest(5, 0), store, 1))
    assert(
      lost.errorClass === "PENSTOCK_MISSING_FILE" && lost.detail.contains(file.path) && lost.detail.contains("shard 1")
    )
    Files.move(aside, manifest)
    Files.write(path, intact)
    // A further generation of the batch, from the same base, names the snapshot again.
    commit(c, 5, 0 until 4, "v6")
    assert(d.readManifest(5, 1).stores(store)(1).snapshot.map(_.section.container) === Some(file))
  }

  test("a snapshot that is told so late that its file may be gone is not named") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    def run(b: Long): Unit = {
      open(c, b)
      commit(c, b, 0 until 4, s"v$b"): Unit
    }
    (0L to 3L).foreach(run)
    val lineage = d.readManifest(1, 0).stores(store)(1).lineage
    def tell(version: Long): Container = {
      val out = new ByteSink
      new ShardLoader(d).load(d.readManifest(1, 0), store, Seq(1))((_, x) => x.content.writeTo(out): Unit)
      val file = Container.Snapshots(version, UUID.randomUUID())
      val section = Section(store, 1, 0, out.size, FileFormat.crc(out.array, 0, out.size))
      val body = SectionTable.encode(Seq(section))
      d.write(file.path, FileFormat.Kind.Snapshots, body, out.array, out.size)
      c.snapshotsWritten(
        SnapshotsWritten(
          c.runId,
          file,
          FileFormat.HeaderBytes.toLong + body.length,
          Seq(SnapshotEntry(version, lineage, section))
        )
      )
      file
    }
    // With minBatchesToRetain=1 the cleaner may be at batch 4, and has taken what is older than batch 2.
    tell(1L)
    run(4L)
    assert(d.readManifest(4, 0).stores(store)(1).snapshot.isEmpty)
    val named = tell(3L)
    run(5L)
    assert(d.readManifest(5, 0).stores(store)(1).snapshot.map(_.section.container) === Some(named))
    assert(content(c.stateRoot, 5)(1).size === 6)
  }

  test("the cleaner leaves every retained batch whole, whatever was written in which order") {
    val r = new Random(23)
    val c = commits(root())
    val d = new StateDirectory(c.stateRoot, hadoop)
    (0L until 30L).foreach { b =>
      open(c, b)
      (0 until 1 + r.nextInt(2)).foreach { g =>
        commit(c, b, Seq(0, 1), s"g$g", inline = r.nextBoolean())
        commit(c, b, Seq(2, 3), s"g$g", inline = r.nextBoolean())
      }
    }
    new StateCleaner(d, minBatches = 4).clean(29L)
    // Older ones stay only where their payload is part of the state.
    val (older, retained) = d.manifests().map(_._1).distinct.sorted.partition(_ < 24)
    assert(retained === (24L to 29L) && older.size < 24)
    (24L to 29L).foreach(b => assert(content(c.stateRoot, b).forall(_.size === b + 1)))
  }
}
