package org.apache.spark.sql.penstock.commit

import java.util.concurrent.{Executor, FutureTask}

import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.state.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.state.format.{ByteSink, Container, FileFormat}

/**
 * Creates the file of a batch's manifest while the batch runs, so that the last of its tasks waits only until the file is
 * filled and has its name. Where the file cannot be created or filled, the manifest is written to a new one. Decision 091.
 *
 * @param threads
 *   where files are created and cancelled
 */
final private class ManifestAhead(directory: StateDirectory, threads: Executor) extends Logging {
  import ManifestAhead._

  private var created: Option[Created] = None

  /** Creates the file of a manifest. */
  def begin(manifest: Container.InManifest): Unit = {
    cancel()
    val file = new FutureTask[StateDirectory#NewFile](() => directory.begin(manifest.path))
    synchronized { created = Some(Created(manifest, file)) }
    threads.execute(file)
  }

  /** Lets go of a file that was not written. Waits for nothing. */
  def cancel(): Unit = take(_ => true).foreach { c =>
    threads.execute(() => Try(c.now().cancel()): Unit)
  }

  /** Writes a manifest. Arguments and errors as of `StateDirectory.write`. */
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
              s"${manifest.path} could not be written to the file that was created for it. It is written anew",
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

    /** The file, created here where nobody has begun to. */
    def now(): StateDirectory#NewFile = {
      file.run()
      file.get()
    }
  }
}
