package org.apache.spark.sql.penstock.commit

import java.util.concurrent.{ExecutorService, RejectedExecutionException}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.state.StateDirectory
import org.apache.spark.util.ThreadUtils

import io.penstock.state.format.{Container, Reachability}

/**
 * Deletes files that no retained batch needs, in the background of the driver.
 *
 * @param retain
 *   batches whose state is kept, `spark.sql.streaming.minBatchesToRetain`
 */
final class StateCleaner(directory: StateDirectory, retain: Int) extends Logging {
  import StateCleaner._

  /** Containers that a manifest names, by batch and generation: written once, so read once. */
  private var known = Map.empty[(Long, Long), Set[Container]]
  private var lastCleaned = -1L
  @volatile private var running = false
  @volatile private var deletedFiles = 0L

  /** Files deleted so far. */
  def deleted: Long = deletedFiles

  /** A batch's state is durable. Cleans now and then, never in the caller's time. */
  def batchDurable(batchId: Long): Unit =
    if (batchId - lastCleaned >= EveryBatches && !running) {
      lastCleaned = batchId
      running = true
      try
        worker.execute { () =>
          try clean(batchId, System.currentTimeMillis())
          catch { case NonFatal(e) => logWarning(s"Cleaning ${directory.root} failed; the next try is later", e) }
          finally running = false
        }
      catch { case _: RejectedExecutionException => running = false }
    }

  /** Deletes what is not needed and returns the paths. */
  def clean(newestBatch: Long, nowMs: Long): Seq[String] = {
    val keep = Reachability.retained(directory.manifests(), newestBatch, retain)
    known = keep.map(k => k -> known.getOrElse(k, directory.readManifest(k._1, k._2).containers)).toMap
    val files = Seq("manifests", "changelogs", "snapshots").flatMap { folder =>
      directory.list(folder).flatMap { case (name, modifiedMs) =>
        name.takeWhile(_.isDigit).toLongOption.map(b => Reachability.Listed(s"$folder/$name", b, modifiedMs))
      }
    }
    val garbage = Reachability.garbage(files, keep, known.values.flatten.toSet, nowMs, GraceMs)
    garbage.foreach(f => directory.delete(f.path))
    deletedFiles += garbage.size
    DriverMetrics.deleted(garbage.size)
    garbage.map(_.path)
  }
}

object StateCleaner {
  private val EveryBatches = 10L
  private val GraceMs = 3600L * 1000L
  private lazy val worker: ExecutorService = ThreadUtils.newDaemonSingleThreadExecutor("penstock-cleaner")
}
