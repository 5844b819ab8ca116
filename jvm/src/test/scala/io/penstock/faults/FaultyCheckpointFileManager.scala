package io.penstock.faults

import java.io.OutputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * A checkpoint file manager that injects the faults of the [[FaultPlan]] in its configuration: operations fail, are
 * delayed, report a wrong outcome or end the process.
 */
class FaultyCheckpointFileManager(path: Path, conf: Configuration) extends CheckpointFileManager {
  private val files = {
    val real = new Configuration(conf)
    real.set(FaultyCheckpointFileManager.ClassKey, conf.get(FaultyCheckpointFileManager.DelegateKey))
    CheckpointFileManager.create(path, real)
  }
  private val plan = FaultPlan.of(conf)

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    at(Fault.Create, path)
    new Output(files.createAtomic(path, overwriteIfPossible), path)
  }

  override def open(path: Path): FSDataInputStream = {
    at(Fault.Open, path)
    files.open(path)
  }

  override def list(path: Path, filter: PathFilter): Array[FileStatus] = {
    plan.at(Fault.List, path.getName, None)
    files.list(path, filter)
  }

  override def delete(path: Path): Unit = {
    at(Fault.Delete, path)
    files.delete(path)
  }

  override def mkdirs(path: Path): Unit = files.mkdirs(path)
  override def exists(path: Path): Boolean = files.exists(path)
  override def isLocal: Boolean = files.isLocal
  override def createCheckpointDirectory(): Path = files.createCheckpointDirectory()
  override def close(): Unit = files.close()

  private def at(moment: Fault.Moment, file: Path): Unit =
    plan.at(moment, file.getParent.getName, file.getName.takeWhile(_.isDigit).toLongOption)

  final private class Output(real: CancellableFSDataOutputStream, path: Path)
      extends CancellableFSDataOutputStream(real: OutputStream) {
    private var ended = false

    override def close(): Unit = if (!ended) {
      // An error before the file appears leaves the stream open; the writer must cancel it.
      at(Fault.Publish, path)
      ended = true
      real.close()
      at(Fault.Published, path)
    }

    override def cancel(): Unit = {
      ended = true
      real.cancel()
    }
  }
}

object FaultyCheckpointFileManager {
  val ClassKey = "spark.sql.streaming.checkpointFileManagerClass"

  /** Class of the file manager that performs the operations. */
  val DelegateKey = "test.faults.delegate"
}
