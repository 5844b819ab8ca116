package org.apache.spark.sql.penstock.integration.harness

import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import io.penstock.LocalCheckpointFileManager

/** A file manager whose operations below a folder hang until a test releases them. */
class HeldFileManager(path: Path, conf: Configuration) extends LocalCheckpointFileManager(path, conf) {
  import HeldFileManager.pass

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    pass(path)
    super.createAtomic(path, overwriteIfPossible)
  }

  override def open(path: Path): FSDataInputStream = {
    pass(path)
    super.open(path)
  }

  override def list(path: Path, filter: PathFilter): Array[FileStatus] = {
    pass(path)
    super.list(path, filter)
  }

  override def mkdirs(path: Path): Unit = {
    pass(path)
    super.mkdirs(path)
  }

  override def exists(path: Path): Boolean = {
    pass(path)
    super.exists(path)
  }

  override def delete(path: Path): Unit = {
    pass(path)
    super.delete(path)
  }
}

object HeldFileManager {
  val Setting: (String, String) =
    "spark.sql.streaming.checkpointFileManagerClass" -> classOf[HeldFileManager].getName

  final private class Hold(val folder: String) {
    val end = new CountDownLatch(1)
    val waiting = new AtomicInteger
  }

  @volatile private var hold = new Hold("nothing")

  /** Makes operations below a folder hang from now on. */
  def holdAt(folder: java.nio.file.Path): Unit = hold = new Hold(folder.toString)

  /** Number of operations that hang now. */
  def waiting: Int = hold.waiting.get

  /** Releases all hanging operations. */
  def release(): Unit = {
    val before = hold
    hold = new Hold("nothing")
    before.end.countDown()
  }

  private def pass(path: Path): Unit = {
    val now = hold
    if (path.toUri.getPath.startsWith(now.folder)) {
      now.waiting.incrementAndGet()
      try now.end.await()
      finally now.waiting.decrementAndGet(): Unit
    }
  }
}
