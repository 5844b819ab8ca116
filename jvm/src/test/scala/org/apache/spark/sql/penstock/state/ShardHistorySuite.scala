package org.apache.spark.sql.penstock.state

import java.nio.file.Files
import java.util.UUID

import scala.collection.mutable
import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.unsafe.Platform

import io.penstock.Seed
import io.penstock.errors.PenstockException
import io.penstock.state.engine.{KeyBytes, ShardState}
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite

/** Reads versions of a shard from manifests on disk. */
class ShardHistorySuite extends AnyFunSuite {
  private val store = StoreKey(0L, "default")
  private val runId = new UUID(1, 1)
  private val hadoop = new Configuration()
  hadoop.set("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")

  /** A query with one shard and with changes in its manifests. A snapshot replaces older changes now and then. */
  private class History(snapshotEvery: Int, minBatches: Int = 100) {
    val directory =
      new StateDirectory(Files.createTempDirectory("penstock-history").resolve("state").toString, hadoop)
    var refs: ShardRefs = ShardRefs.Empty
    val versions = mutable.ArrayBuffer(Map.empty[String, String])
    private var batch = 0L

    def write(changes: Map[String, Option[String]]): Unit = {
      if (batch > 0 && batch % snapshotEvery == 0) snapshot()
      val own = Container.InManifest(batch, 0L)
      val payload = changeSet(changes)
      if (changes.nonEmpty) {
        val section = SectionRef(own, 0L, payload.size, FileFormat.crc(payload.array, 0, payload.size))
        refs = refs.copy(deltas = refs.deltas :+ DeltaRef(batch + 1, UUID.randomUUID(), section))
      }
      val retainedFrom = Reachability.oldestRetained(batch, minBatches)
      val stores = Map(store -> Vector(refs))
      val manifest = Manifest(batch, 0L, if (batch == 0) -1L else 0L, retainedFrom, runId, 0L, 1, stores)
      val body = ManifestFormat.encode(manifest, own)
      directory.write(own.path, FileFormat.Kind.Manifest, body, payload.array, payload.size)
      refs = manifest.written(body.length).stores(store).head
      versions += changes.foldLeft(versions.last) {
        case (content, (key, Some(value))) => content.updated(key, value)
        case (content, (key, None)) => content - key
      }
      batch += 1
    }

    private def snapshot(): Unit = if (refs.deltas.nonEmpty) {
      val container = Container.Snapshots(batch, UUID.randomUUID())
      val payload = new ByteSink
      val puts = changeSet(versions.last.map { case (key, value) => key -> Some(value) })
      val content = new ShardState
      content(puts.array, 0, puts.size)
      content.image.writeTo(payload)
      val crc = FileFormat.crc(payload.array, 0, payload.size)
      val body = SectionTable.encode(Seq(Section(store, 0, 0, payload.size, crc)))
      directory.write(container.path, FileFormat.Kind.Snapshots, body, payload.array, payload.size)
      val section = SectionRef(container, FileFormat.HeaderBytes.toLong + body.length, payload.size, crc)
      refs = refs.withSnapshot(SnapshotRef(refs.deltas.last.version, refs.lineage, section)).get
    }

    def open(end: Long): ShardHistory = new ShardHistory(directory, store, 0, end)
  }

  private def changeSet(changes: Map[String, Option[String]]): ByteSink = {
    val out = new ByteSink
    val writer = new ChangeSet.Writer(out)
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    writer.family("default", FamilyTraits(ordered = false, multiValued = false))
    changes.foreach { case (key, value) =>
      val k = key.getBytes
      value match {
        case Some(text) => writer.put(k, at, k.length, text.getBytes, at, text.length)
        case None => writer.remove(k, at, k.length)
      }
    }
    writer.finish()
    out
  }

  private def content(state: ShardState): Map[String, String] =
    Option(state.familyOrNull("default")).fold(Map.empty[String, String]) { family =>
      val t = family.table
      t.refs.map { ref =>
        val key = t.keyOf(ref, new KeyBytes)
        def text(base: AnyRef, at: Long, length: Int) = {
          val bytes = new Array[Byte](length)
          Platform.copyMemory(base, at, bytes, Platform.BYTE_ARRAY_OFFSET, length)
          new String(bytes)
        }
        text(key.base, key.offset, key.length) -> text(t.page(ref), t.valueAt(ref), t.valueLength(ref))
      }.toMap
    }

  test("every version is read directly and from every earlier one, whatever snapshots exist") {
    info(s"seed ${Seed.value}")
    val random = new Random(Seed.value)
    val history = new History(snapshotEvery = 3)
    (0 until 12).foreach { _ =>
      val keys = random.shuffle((0 until 6).map(k => s"k$k")).take(random.nextInt(4))
      history.write(keys.map { k =>
        k -> (if (history.versions.last.contains(k) && random.nextInt(3) == 0) None else Some(s"v${random.nextInt(9)}"))
      }.toMap)
    }
    assert(history.refs.snapshot.isDefined)
    history.versions.indices.foreach { to =>
      val opened = history.open(to.toLong)
      assert(content(opened.content(to.toLong)) == history.versions(to))
      (0 to to).foreach(from => assert(content(opened.replay(from.toLong, to.toLong)) == history.versions(to)))
    }
    val opened = history.open(history.versions.size - 1L)
    (1 until history.versions.size).foreach { version =>
      // A batch that rewrites the same content has changed the shard nevertheless.
      if (history.versions(version) != history.versions(version - 1)) {
        val changes = new ShardState
        opened.changes(version.toLong, changes)
        assert(changes.familyNames.nonEmpty)
      }
    }
  }

  test("a missing version is reported") {
    val history = new History(snapshotEvery = 99)
    history.write(Map("a" -> Some("1")))
    val e = intercept[PenstockException](history.open(2L).replay(1L, 2L))
    assert(e.errorClass == "PENSTOCK_STATE_MISSING" && e.detail.contains("no state of batch 1"))
    assert(intercept[PenstockException](history.open(7L).content(7L)).detail.contains("minBatchesToRetain"))
  }

  test("a manifest that is kept only for its payload gives no version") {
    val history = new History(snapshotEvery = 99, minBatches = 1)
    (0 until 6).foreach(batch => history.write(Map("a" -> Some(s"$batch"))))
    // Batches 3 to 5 are retained, that is, versions 4 to 6.
    assert(content(history.open(4L).content(4L)) == Map("a" -> "3"))
    assert(content(history.open(6L).replay(4L, 6L)) == Map("a" -> "5"))
    Seq(() => history.open(3L).content(3L), () => history.open(6L).replay(3L, 6L)).foreach { read =>
      val e = intercept[PenstockException](read())
      assert(e.errorClass == "PENSTOCK_STATE_MISSING" && e.detail.contains("no state of batch 2"))
    }
  }

  test("a batch that does not continue the one before is rejected, with the manifest's name") {
    val history = new History(snapshotEvery = 99)
    history.write(Map("a" -> Some("1")))
    history.write(Map("a" -> Some("2")))
    history.refs = history.refs.copy(deltas = history.refs.deltas.dropRight(1))
    history.write(Map("b" -> Some("3")))
    assert(content(history.open(2L).replay(1L, 2L)) == Map("a" -> "2"))
    val e = intercept[PenstockException](history.open(3L).replay(1L, 3L))
    assert(e.errorClass == "PENSTOCK_CORRUPT_FILE" && e.detail.contains("manifests/2.0"))
  }
}
