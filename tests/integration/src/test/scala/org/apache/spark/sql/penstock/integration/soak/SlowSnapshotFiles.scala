package org.apache.spark.sql.penstock.integration.soak

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import io.penstock.LocalCheckpointFileManager

/** A file system on which writing a snapshot file takes longer than a batch. */
class SlowSnapshotFiles(path: Path, conf: Configuration) extends LocalCheckpointFileManager(path, conf) {
  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    if (path.getParent.getName == "snapshots") Thread.sleep(conf.getLong(SlowSnapshotFiles.DelayKey, 0L))
    super.createAtomic(path, overwriteIfPossible)
  }
}

object SlowSnapshotFiles {
  val DelayKey = "soak.snapshotDelayMs"

  /** Few shards, each larger than what a task may write per batch, and files that take many batches. */
  val Settings: Map[String, String] = Map(
    "spark.sql.streaming.checkpointFileManagerClass" -> classOf[SlowSnapshotFiles].getName,
    DelayKey -> "1500",
    "spark.penstock.shards" -> "8",
    "spark.penstock.state.snapshotBytes" -> "1m",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2",
    "spark.sql.streaming.minBatchesToRetain" -> "30"
  )
}
