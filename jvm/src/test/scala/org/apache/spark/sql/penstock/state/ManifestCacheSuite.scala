package org.apache.spark.sql.penstock.state

import java.nio.file.{Files, Path}

import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.state.format.{Manifest, StoreKey}
import org.scalatest.funsuite.AnyFunSuite

/** A checkpoint is deleted and another one is written at its path, within one application. */
class ManifestCacheSuite extends AnyFunSuite {
  private val store = StoreKey(0L, "default")
  private val hadoop = new Configuration()
  hadoop.set("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")

  private def directory(root: Path) = new StateDirectory(root.toString, hadoop)

  /** Calls `body` with the manifest of batch 1 of a first checkpoint and of a second checkpoint at the same path. */
  private def twice(body: (StateDirectory, Manifest, Manifest) => Unit): Unit = {
    val root = Files.createTempDirectory("penstock-replaced").resolve("state")
    new WrittenCheckpoint(root, hadoop, seed = 1)
    val first = ManifestCache.current(directory(root), 1L, 0L).get
    FileUtils.deleteDirectory(root.toFile)
    assert(ManifestCache.current(directory(root), 1L, 0L).isEmpty)
    new WrittenCheckpoint(root, hadoop, seed = 2)
    body(directory(root), first, directory(root).readManifest(1L, 0L))
  }

  test("a state reader gets the manifest that is in the checkpoint now") {
    twice { (directory, first, second) =>
      assert(first.runId != second.runId)
      assert(ManifestCache.current(directory, 1L, 0L).contains(second))
      assert(ManifestCache.current(directory, 1L, 0L).get eq ManifestCache.current(directory, 1L, 0L).get)
      val history = new ShardHistory(directory, store, 0, end = 2L)
      val loaded = new ShardLoader(directory).loadOne(second, store, 0).content
      assert(history.content(2L).memoryBytes == loaded.memoryBytes)
    }
  }

  test("a task gets the manifest that matches its lease, or an error that names the cause") {
    twice { (directory, first, second) =>
      def from(m: Manifest) = ManifestCache.startingFrom(directory, 1L, 0L)(store, m.lineages(store))
      assert(from(second) == second && (from(second) eq from(second)))
      val e = intercept[PenstockException](from(first))
      assert(e.errorClass == "PENSTOCK_CHECKPOINT_REPLACED" && e.detail.contains("manifests/1.0"))
      assert(from(second) == second)
    }
  }

  test("reading a manifest for one query does not block another query") {
    val root = Files.createTempDirectory("penstock-replaced").resolve("state")
    new WrittenCheckpoint(root, hadoop, seed = 1)
    val slow = new Thread(() => ManifestCache.current(new StateDirectory(root.toString, SlowFiles.conf), 2L, 0L): Unit)
    slow.start()
    SlowFiles.reached.await()
    try assert(ManifestCache.current(directory(root), 3L, 0L).nonEmpty)
    finally SlowFiles.goOn.countDown()
    slow.join()
  }
}

/** A file system that blocks until a test releases it. */
private object SlowFiles {
  val reached, goOn = new java.util.concurrent.CountDownLatch(1)

  def conf: Configuration = {
    val c = new Configuration()
    c.set("spark.sql.streaming.checkpointFileManagerClass", classOf[SlowFiles].getName)
    c
  }
}

private class SlowFiles(path: org.apache.hadoop.fs.Path, conf: Configuration)
    extends io.penstock.LocalCheckpointFileManager(path, conf) {
  override def exists(path: org.apache.hadoop.fs.Path): Boolean = {
    SlowFiles.reached.countDown()
    SlowFiles.goOn.await()
    super.exists(path)
  }
}
