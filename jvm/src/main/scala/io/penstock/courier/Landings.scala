package io.penstock.courier

import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.{Files, Path}

/**
 * Where answers to a question may land.
 *
 * @param process
 *   the asking executor's sidecar, which has the memory as `descriptor`
 * @param limitMs
 *   in which the answer is wanted
 * @param token
 *   by which it is expected
 */
final private[courier] case class LandingPlace(process: Long, descriptor: Int, limitMs: Int, token: Long)

/** Memory of other executors of this host in which this one's answers land; the mappings are kept. */
private[courier] object Landings {
  private val MostKept = 64
  private val Name = "/memfd:penstock-lane (deleted)"

  private val kept = new java.util.LinkedHashMap[(Path, AnyRef), Landing](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[(Path, AnyRef), Landing]): Boolean = size > MostKept
  }

  /**
   * Memory at a place; None where it cannot be had, as from another container, in which numbers of processes may mean others: the
   * token tells.
   */
  def at(place: LandingPlace): Option[Landing] = {
    val path = Path.of(s"/proc/${place.process}/fd/${place.descriptor}")
    try {
      // A number is another file's as soon as its process has ended.
      if (Files.readSymbolicLink(path).toString != Name) None
      else {
        val file = (path, Files.getAttribute(path, "unix:ino"))
        Some(synchronized(kept.computeIfAbsent(file, _ => map(path)))).filter(_.expects(place.token))
      }
    } catch { case _: IOException | _: SecurityException => None }
  }

  private def map(path: Path): Landing = {
    val file = FileChannel.open(path, READ, WRITE)
    try {
      if (file.size != Lane.AskingBytes) throw new IOException(s"$path has ${file.size} bytes")
      new Landing(file.map(FileChannel.MapMode.READ_WRITE, Lane.MemoryBytes.toLong, Landing.Bytes.toLong))
    } finally file.close()
  }
}
