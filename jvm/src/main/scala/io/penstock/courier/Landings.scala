package io.penstock.courier

import java.io.IOException
import java.nio.file.Path

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

/** Memory of other executors of this host in which this one's answers land; the mappings are kept while those have it. */
private[courier] object Landings {
  private val MostKept = 64

  /** Where some process has it. */
  private case class Kept(entry: Path, landing: Landing)

  private val kept = new java.util.LinkedHashMap[AnyRef, Kept](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[AnyRef, Kept]): Boolean = size > MostKept
  }

  /**
   * Memory at a place; None where it cannot be had, as from another container, in which numbers of processes may mean others: the
   * token tells.
   */
  def at(place: LandingPlace): Option[Landing] = {
    val entry = Path.of(s"/proc/${place.process}/fd/${place.descriptor}")
    // A number is another file's as soon as its process has ended.
    try LaneMemory.inodeOf(entry).map(landing(entry, _)).filter(_.expects(place.token))
    catch { case _: IOException | _: SecurityException => None }
  }

  private def landing(entry: Path, inode: AnyRef): Landing = synchronized {
    val landing = Option(kept.get(inode)).fold(map(entry))(_.landing)
    // The sidecar of an executor that was started anew has the same memory, elsewhere.
    kept.put(inode, Kept(entry, landing))
    landing
  }

  private def map(entry: Path): Landing = {
    kept.entrySet.removeIf(e => !LaneMemory.inodeOf(e.getValue.entry).contains(e.getKey))
    val memory = LaneMemory.at(entry, Lane.AskingBytes)
    memory.close()
    new Landing(memory.bytes.slice(Lane.MemoryBytes, Landing.Bytes))
  }
}
