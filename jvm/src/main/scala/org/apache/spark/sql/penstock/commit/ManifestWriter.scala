package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.Executor

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.lease.BatchSpec
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.state.format.{Container, ManifestFormat}

/**
 * Writes the manifests of one query run.
 *
 * @param shardCount
 *   S, the number of base shards
 * @param threads
 *   threads that create files in advance
 */
final private class ManifestWriter(runId: UUID, directory: StateDirectory, shardCount: Int, threads: Executor)
    extends Logging {
  private val ahead = new ManifestAhead(directory, threads)

  /** Whether the folders of all state partitions exist. Used only by the thread that writes manifests. */
  private var partitionsEnsured = false

  /** Creates the file of the next manifest, in the background. */
  def begin(next: Container.InManifest): Unit = ahead.begin(next)

  /** Cancels a file that was created and not written, in the background. */
  def cancel(): Unit = ahead.cancel()

  /**
   * Writes a manifest.
   *
   * @return
   *   length of its body in bytes
   */
  def write(spec: BatchSpec, f: OpenBatch.Folded): Int = {
    val body = ManifestFormat.encode(f.manifest, f.own)
    if (!partitionsEnsured) {
      // Spark's state reader looks for these folders. A copy of a checkpoint may have lost them.
      for (r <- spec.regions; o <- r.operators)
        directory.ensurePartitions(o.operatorId, if (r.single) 1 else shardCount)
      partitionsEnsured = true
    }
    writeOnce(f, body)
    body.length
  }

  /**
   * Each generation is used only once, so if the file already exists and is of this run, the file system has repeated
   * the write.
   */
  private def writeOnce(f: OpenBatch.Folded, body: Array[Byte]): Unit =
    try ahead.write(f.own, body, f.payload)
    catch {
      case e: PenstockException
          if e.errorClass == "PENSTOCK_CONCURRENT_RUN" &&
            directory.readManifest(f.own.batchId, f.own.generation).runId == runId =>
        logWarning(s"${f.own.path} of run $runId was written, but the file system reported that it already existed")
    }
}
