package org.apache.spark.sql.penstock.commit

import java.util.concurrent.{ExecutorService, RejectedExecutionException}

import scala.collection.mutable
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

  /** What is needed of manifests, by batch and generation: written once, so read once. */
  private val known = mutable.Map.empty[(Long, Long), Known]
  private val held = mutable.Set.empty[String]
  private var lastCleaned = -1L
  @volatile private var running = false
  @volatile private var deletedFiles = 0L

  /** Files deleted so far. */
  def deleted: Long = deletedFiles

  /** A batch's state is durable. Cleans now and then, never in the caller's time. */
  def batchDurable(batchId: Long): Unit =
    if (batchId - lastCleaned >= math.min(EveryBatches, retain) && !running) {
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
    val keep = Reachability.retained(directory.manifests(), newestBatch, retain)(read(_).baseGeneration)
    val needed = keep.flatMap(read(_).containers).toSet
    known.filterInPlace((k, _) => keep.contains(k))
    val files = Seq("manifests", "changelogs", "snapshots").flatMap { folder =>
      directory.list(folder).flatMap { case (name, modifiedMs) =>
        name.takeWhile(_.isDigit).toLongOption.map(b => Reachability.Listed(s"$folder/$name", b, modifiedMs))
      }
    }
    val garbage =
      Reachability.garbage(files, keep, needed, newestBatch, nowMs, GraceMs).map(_.path).filter(deleteUnlessHeld)
    deletedFiles += garbage.size
    DriverMetrics.deleted(garbage.size)
    garbage
  }

  /**
   * A file of snapshots that the next manifest may name is not to be deleted, however old the version in it.
   *
   * @return
   *   false where it has been already
   */
  def hold(snapshots: Container.Snapshots): Boolean = held.synchronized {
    val there = directory.exists(snapshots.path)
    if (there) held += snapshots.path
    there
  }

  /** A batch has ended whose manifest could have named these. */
  def release(snapshots: Iterable[Container.Snapshots]): Unit = held.synchronized(held --= snapshots.map(_.path)): Unit

  private def deleteUnlessHeld(path: String): Boolean = held.synchronized {
    val free = !held.contains(path)
    if (free) directory.delete(path)
    free
  }

  private def read(manifest: (Long, Long)): Known = known.getOrElseUpdate(
    manifest, {
      val m = directory.readManifest(manifest._1, manifest._2)
      Known(m.baseGeneration, m.containers)
    }
  )
}

object StateCleaner {
  final private case class Known(baseGeneration: Long, containers: Set[Container])

  private val EveryBatches = 10
  private val GraceMs = 3600L * 1000L
  private lazy val worker: ExecutorService = ThreadUtils.newDaemonSingleThreadExecutor("penstock-cleaner")
}
