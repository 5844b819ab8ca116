package org.apache.spark.sql.penstock.commit

import java.nio.file.{Files, Path}

import scala.util.Random

import org.apache.spark.sql.penstock.storage.StateDirectory

import org.scalatest.funsuite.AnyFunSuite

/** Every batch that a manifest claims as retained can be read. */
class RetentionSuite extends AnyFunSuite with QueryRuns {

  test("a run that retains more batches than its predecessor does not claim deleted ones") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    runBatches(c, 0L to 4L, inline = false)(b => s"v$b")
    new StateCleaner(d, minBatches = 1).clean(4L)
    assert(d.readManifest(4, 0).retainedFrom === 2L && d.manifests().map(_._1).min === 2L)
    // Batch 4 was not committed, so the new run starts from a manifest that claims an earlier batch.
    assert(d.readManifest(3, 0).retainedFrom === 1L)
    val next = commits(c.stateRoot)
    runBatches(next, 4L to 5L)(b => s"w$b")
    assert(d.readManifest(4, 1).retainedFrom === 2L && d.readManifest(5, 0).retainedFrom === 2L)
  }

  test("a damaged manifest of a batch that runs again is not needed") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    runBatches(c, 0L to 4L)(b => s"v$b")
    val damaged = Path.of(c.stateRoot, "_penstock", "manifests", "4.0")
    Files.write(damaged, Array.fill[Byte](Files.size(damaged).toInt)(7))
    Files.deleteIfExists(damaged.resolveSibling(".4.0.crc"))
    val next = commits(c.stateRoot)
    open(next, 4)
    commit(next, 4, 0 until 4, "w4")
    assert(d.readManifest(4, 1).retainedFrom === 1L && content(c.stateRoot, 4).forall(_.size === 5))
  }

  test("a run that goes back further than was retained can be read") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    runBatches(c, 0L to 6L)(b => s"v$b")
    assert(d.readManifest(6, 0).retainedFrom === 4L)
    val next = commits(c.stateRoot)
    open(next, 3)
    commit(next, 3, 0 until 4, "w3")
    assert(d.readManifest(3, 1).retainedFrom === 3L && content(c.stateRoot, 3).forall(_.size === 4))
  }

  test("the cleaner keeps every retained batch complete, whatever the order of writes") {
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
    // Older manifests remain only if their payload is part of the state.
    val (older, retained) = d.manifests().map(_._1).distinct.sorted.partition(_ < 24)
    assert(retained === (24L to 29L) && older.size < 24)
    (24L to 29L).foreach(b => assert(content(c.stateRoot, b).forall(_.size === b + 1)))
  }
}
