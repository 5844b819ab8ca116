package org.apache.spark.sql.penstock.commit

import java.nio.file.{Files, Path}

import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.state.ShardHistory
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.state.engine.KeyBytes
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite

/** The state from which a run starts in a checkpoint that exists. */
class StartingStateSuite extends AnyFunSuite with QueryRuns {

  test("a new run continues the newest generation, and a rerun batch gets a higher generation") {
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

  test("a run continues its own generation, whatever another run writes for the same batch") {
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

  test("another number of shards and a missing manifest are rejected") {
    val at = root()
    val c = commits(at)
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    val other = commits(at, shards = 8)
    val e = intercept[PenstockException](
      other.open(BatchSpec(other.runId, at, 1L, 8, Seq(region)))(Map.empty)
    )
    assert(e.errorClass === "PENSTOCK_SHARDS_CHANGED" && e.getMessage.contains("spark.penstock.shards=4"))
    val gap = intercept[PenstockException](open(commits(at), 7))
    assert(gap.errorClass === "PENSTOCK_STATE_MISSING" && gap.getMessage.contains("no manifest of that batch"))
  }

  test("a manifest that does not match the query is rejected before a task runs") {
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
}
