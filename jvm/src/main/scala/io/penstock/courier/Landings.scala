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

  private case class Kept(entry: Path, memory: LaneMemory) {
    val landing = new Landing(memory.bytes.slice(Lane.MemoryBytes, Landing.Bytes))
    def isThere: Boolean = LaneMemory.inodeOf(entry).contains(memory.inode)
  }

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
    val known = Option(kept.get(inode)).getOrElse {
      kept.values.removeIf(!_.isThere)
      val memory = LaneMemory.at(entry, Lane.AskingBytes)
      memory.close()
      Kept(entry, memory)
    }
    // The sidecar of an executor that was started anew has the same memory, elsewhere.
    if (known.entry != entry || !kept.containsKey(inode)) kept.put(inode, known.copy(entry = entry))
    known.landing
  }
}
