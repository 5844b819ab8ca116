package org.apache.spark.sql.penstock.commit

import java.nio.file.{Files, Path}
import java.util.UUID

import org.apache.spark.sql.penstock.state.ShardLoader
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite

/** Snapshots that executors report are named in manifests. */
class ReportedSnapshotsSuite extends AnyFunSuite with QueryRuns {

  test("a snapshot from the state's history shortens the chain, one of a lost attempt does not") {
    val c = commits(root())
    runBatches(c, 0L until 5L)(b => s"v$b")
    open(c, 5)
    val d = new StateDirectory(c.stateRoot, hadoop)
    val before = d.readManifest(4, 0).stores(store)
    val newest = d.readManifest(4, 0)
    val file =
      snapshot(
        c,
        5,
        Seq(1 -> before(1).lineage, 2 -> UUID.randomUUID()).map { case (s, lineage) =>
          (s, lineage, contentOf(c, newest, s)(_))
        }
      )
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
    // Without the manifests that name the changes the snapshot cannot be replaced.
    val manifest = Path.of(c.stateRoot, "_penstock", "manifests", "4.0")
    val aside = Files.move(manifest, manifest.resolveSibling(".4.0.aside"))
    val lost = intercept[PenstockException](new ShardLoader(d).loadOne(d.readManifest(5, 0), store, 1))
    assert(
      lost.errorClass === "PENSTOCK_MISSING_FILE" && lost.detail.contains(file.path) && lost.detail.contains("shard 1")
    )
    Files.move(aside, manifest)
    Files.write(path, intact)
    // Another generation of the batch with the same base names the snapshot again.
    commit(c, 5, 0 until 4, "v6")
    assert(d.readManifest(5, 1).stores(store)(1).snapshot.map(_.section.container) === Some(file))
  }

  test("a snapshot that is reported so late that its file may be deleted is not named") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    def run(batches: Seq[Long]): Unit = runBatches(c, batches)(b => s"v$b")
    run(0L to 3L)
    val lineage = d.readManifest(1, 0).stores(store)(1).lineage
    def tell(version: Long): Container =
      snapshot(c, version, Seq((1, lineage, contentOf(c, d.readManifest(1, 0), 1)(_))))
    // With minBatchesToRetain=1 the cleaner may be at batch 4 and have deleted everything older than batch 2.
    tell(1L)
    run(Seq(4L))
    assert(d.readManifest(4, 0).stores(store)(1).snapshot.isEmpty)
    val named = tell(3L)
    run(Seq(5L))
    assert(d.readManifest(5, 0).stores(store)(1).snapshot.map(_.section.container) === Some(named))
    assert(content(c.stateRoot, 5)(1).size === 6)
  }
}
