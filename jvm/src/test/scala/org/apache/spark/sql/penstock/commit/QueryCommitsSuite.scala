package org.apache.spark.sql.penstock.commit

import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.state.ManifestCache
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite

/** The commit protocol on real files: when a batch is durable, and what is rejected. */
class QueryCommitsSuite extends AnyFunSuite with QueryRuns {

  test("a batch is durable with its last commit, not before") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1), "a")
    assert(manifests(c.stateRoot).isEmpty)
    commit(c, 0, Seq(2, 3), "b", inline = false)
    assert(manifests(c.stateRoot) === Seq("0.0"))
    assert(content(c.stateRoot, 0) === Seq("a-0", "a-1", "b-2", "b-3").map(v => Map("k0" -> v)))
  }

  test("a later attempt replaces an earlier one, before and after the manifest") {
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
    assert(next.stores(store).lineage(0) === lineage)
  }

  test("an attempt of a closed batch is rejected and changes nothing") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    open(c, 1)
    val e = intercept[PenstockException](commit(c, 0, 0 until 4, "zombie"))
    assert(e.errorClass === "PENSTOCK_BATCH_CLOSED")
    assert(content(c.stateRoot, 0).map(_("k0")) === (0 until 4).map(s => s"a-$s"))
  }

  test("an incomplete batch stops the query, and the error says what to do") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1, 2), "a")
    val e = intercept[PenstockException](open(c, 1))
    assert(e.errorClass === "PENSTOCK_STATE_INCOMPLETE")
    assert(
      e.getMessage.contains("1 of 4 shards of operator 0") && e.getMessage.contains("remove commits/0 and offsets/1")
    )
  }

  test("an attempt fails if its manifest cannot be written, and the next one makes the batch durable") {
    val at = root()
    // Both the file that was created ahead and the file written in its place fail.
    val full = Seq.fill(2)("publish manifests/0 fail")
    val unreported = Seq("publish manifests/1 fail", "published manifests/1 fail")
    val c = commits(at, faults = full ++ unreported :+ "published manifests/2 exists")
    open(c, 0)
    commit(c, 0, Seq(0, 1), "a")
    val lost = intercept[PenstockException](commit(c, 0, Seq(2, 3), "lost"))
    assert(lost.errorClass === "PENSTOCK_CANNOT_WRITE" && lost.detail.contains("manifests/0.0"))
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

  test("of two concurrent runs the second to finish a batch is stopped, and nothing is overwritten") {
    val at = root()
    val first = commits(at)
    val second = commits(at)
    Seq(first, second).foreach(open(_, 0))
    commit(first, 0, 0 until 4, "first")
    val e = intercept[PenstockException](commit(second, 0, 0 until 4, "second"))
    assert(e.errorClass === "PENSTOCK_CONCURRENT_RUN" && e.getMessage.contains("0.0"))
    assert(content(at, 0).map(_("k0")) === (0 until 4).map(s => s"first-$s"))
  }

  test("the base named in a lease of a single-partition operator is found in the manifest") {
    val c = commits(root())
    val single = region.copy(single = true)
    def begin(batch: Long) =
      c.open(BatchSpec(c.runId, c.stateRoot, batch, shardCount, Seq(single)))(Map(0L -> Layout(shardCount)))(0L)
    begin(0)
    val lineage = commit(c, 0, Seq(0), "a")
    val base = begin(1).base
    assert(base.stores(store).lineage(0) == lineage)
    val directory = new StateDirectory(c.stateRoot, hadoop)
    val m = ManifestCache.startingFrom(directory, 0L, base.generation)(store, base.stores(store).lineages)
    assert(m.stores(store).map(_.lineage) == Vector(lineage))
  }

  test("a pinned hash has its own chain of deltas, which ends when its slot is reused") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    val pinned = Layout(4).pinning(Set(9))
    val begun = open(c, 1, pinned)
    assert(begun.layout == pinned && begun.base.stores(store).layout == Layout(4))
    assert(begun.base.stores(store).lineage(4, pinned) == ShardRefs.NeverWritten)
    // The layout of a batch is fixed when the batch is first opened.
    assert(open(c, 1, Layout(4)).layout == pinned)
    commit(c, 1, 0 until 4, "b")
    assert(manifests(c.stateRoot) === Seq("0.0"), "the pinned shard has not committed")
    val lineage = commit(c, 1, Seq(4), "b")

    val next = open(c, 2, pinned)
    assert(next.base.stores(store).layout == pinned && next.base.stores(store).lineage(4, pinned) == lineage)
    commit(c, 2, 0 until 5, "c")
    val d = new StateDirectory(c.stateRoot, hadoop)
    assert(d.readManifest(2, 0).stores(store)(4).deltas.map(_.version) == Vector(2L, 3L))

    val other = Layout(4).pinning(Set(-3))
    val reused = open(c, 3, other).base.stores(store)
    assert(reused.lineage(4, other) == ShardRefs.NeverWritten && reused.lineage(3, other) != ShardRefs.NeverWritten)
    commit(c, 3, 0 until 5, "d")
    val m = d.readManifest(3, 0)
    assert(m.layout(store) == other && m.stores(store)(4).deltas.map(_.version) == Vector(4L))
    open(c, 4)
    commit(c, 4, 0 until 4, "e")
    assert(d.readManifest(4, 0).stores(store).size == 4 && d.readManifest(4, 0).pinSlots.isEmpty)
  }
}
