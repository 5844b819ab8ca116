package org.apache.spark.sql.penstock.commit

import java.util.concurrent.{Executor, FutureTask}

import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.state.format.{ByteSink, Container, FileFormat}

/**
 * Creates the file of a batch's manifest while the batch runs, so that the last of its tasks waits only until the file
 * is filled and renamed. If the file cannot be created or filled, the manifest is written to a new file. Decision 091.
 *
 * @param threads
 *   threads that create and cancel files
 */
final private class ManifestAhead(directory: StateDirectory, threads: Executor) extends Logging {
  import ManifestAhead._

  private var created: Option[Created] = None

  /** Creates the file of a manifest, in the background. A file that was created before and not written is cancelled. */
  def begin(manifest: Container.InManifest): Unit = {
    cancel()
    val file = new FutureTask[StateDirectory#NewFile](() => directory.begin(manifest.path))
    synchronized { created = Some(Created(manifest, file)) }
    threads.execute(file)
  }

  /** Cancels a file that was created and not written, in the background. */
  def cancel(): Unit = take(_ => true).foreach { c =>
    threads.execute(() => Try(c.now().cancel()): Unit)
  }

  /** Writes a manifest. Arguments and errors are those of `StateDirectory.write`. */
  def write(manifest: Container.InManifest, body: Array[Byte], payload: ByteSink): Unit = {
    def writeAnew(): Unit =
      directory.write(manifest.path, FileFormat.Kind.Manifest, body, payload.array, payload.size)
    take(_.manifest == manifest).flatMap(c => Try(c.now()).toOption) match {
      case None => writeAnew()
      case Some(file) =>
        try file.finish(FileFormat.Kind.Manifest, body, payload.array, payload.size)
        catch {
          case e: PenstockException if e.errorClass != "PENSTOCK_CONCURRENT_RUN" =>
            logWarning(
              s"${manifest.path} could not be written to the file that was created for it in advance. It is written " +
                "to a new file",
              e
            )
            writeAnew()
        }
    }
  }

  private def take(which: Created => Boolean): Option[Created] = synchronized {
    val taken = created.filter(which)
    if (taken.nonEmpty) created = None
    taken
  }
}

private object ManifestAhead {
  final private case class Created(manifest: Container.InManifest, file: FutureTask[StateDirectory#NewFile]) {

    /** The file. It is created by this call if no other thread has begun to. */
    def now(): StateDirectory#NewFile = {
      file.run()
      file.get()
    }
  }
}
