package org.apache.spark.sql.penstock.commit

import java.util.concurrent.{Executor, RejectedExecutionException}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.state.format.{Container, Reachability}

/**
 * Deletes files that no retained batch needs, in the background on the driver.
 *
 * @param minBatches
 *   `spark.sql.streaming.minBatchesToRetain`
 * @param threads
 *   threads that clean, one of them at a time
 * @param count
 *   called with the number of files that were deleted
 */
final class StateCleaner(
    directory: StateDirectory,
    minBatches: Int,
    threads: Executor = _.run(),
    count: Int => Unit = _ => ()
) extends Logging {
  import StateCleaner._

  /**
   * Containers that each manifest names, by batch and generation. A manifest never changes, so it is read only once.
   */
  private val known = mutable.Map.empty[(Long, Long), Set[Container]]
  private var lastCleaned = -1L
  @volatile private var running = false
  @volatile private var deletedFiles = 0L

  /** Files deleted so far. */
  def deleted: Long = deletedFiles

  /** Called when a batch's state is durable. Every few batches, starts cleaning in the background. */
  def batchDurable(batchId: Long): Unit =
    if (batchId - lastCleaned >= math.min(EveryBatches, minBatches) && !running) {
      lastCleaned = batchId
      running = true
      try
        threads.execute { () =>
          try clean(batchId)
          catch {
            case NonFatal(e) =>
              logWarning(s"Files that are not needed could not be deleted from ${directory.root}; tried again later", e)
          } finally running = false
        }
      catch { case _: RejectedExecutionException => running = false }
    }

  /** Deletes the files that are not needed, and returns their paths. */
  def clean(newestBatch: Long): Seq[String] = {
    val keep = Reachability.retained(directory.manifests(), newestBatch, minBatches)
    val isKept = keep.toSet
    known.filterInPlace((k, _) => isKept(k))
    val needed = keep.flatMap(k => known.getOrElseUpdate(k, directory.readManifest(k._1, k._2).containers)).toSet
    val files = Seq("manifests", "changelogs", "snapshots").flatMap { folder =>
      directory.list(folder).flatMap(name => numberOf(name).map(Reachability.Listed(s"$folder/$name", _)))
    }
    val garbage = Reachability.garbage(files, keep, needed).map(_.path)
    garbage.foreach(directory.delete)
    deletedFiles += garbage.size
    count(garbage.size)
    garbage
  }

  private def numberOf(name: String): Option[Long] = name.takeWhile(_.isDigit).toLongOption
}

private object StateCleaner {
  val EveryBatches = 10
}
