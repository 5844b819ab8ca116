package io.penstock.state.memory

import io.penstock.conf.Settings
import io.penstock.errors.PenstockException

/**
 * Limit of the heap that state may take in this JVM.
 *
 * @param held
 *   Account of the heap that state takes
 * @param limit
 *   Returns the current limit
 * @param reclaim
 *   Drops state that no batch needs
 * @param describe
 *   Describes which state takes how much heap, for the error message
 */
final class MemoryBound(val held: MemoryAccount, limit: () => MemoryBound.Limit, reclaim: () => Unit)(
    describe: => String
) {

  /** Maximum number of heap bytes of state. */
  def limitBytes: Long = limit().bytes

  /**
   * Must be called after bytes were allocated, when all data are in a consistent state, because it may throw.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_TOO_LARGE if state exceeds the limit and not enough can be dropped
   */
  def verify(): Unit = if (held.bytes > limit().bytes) reclaimOrRefuse()

  /** One task drops state while the others wait. */
  private def reclaimOrRefuse(): Unit = synchronized {
    if (held.bytes > limit().bytes) reclaim()
    val l = limit()
    val bytes = held.bytes
    if (bytes > l.bytes) {
      throw new PenstockException(
        "PENSTOCK_STATE_TOO_LARGE",
        s"state takes $bytes bytes of heap, but ${Settings.StateMaxBytes.key}=${l.text} allows only ${l.bytes} bytes " +
          s"in ${l.location}: $describe. Committed state is safe, and the query continues from it. Raise " +
          s"${Settings.StateMaxBytes.key} together with spark.executor.memory, or use more executors"
      )
    }
  }
}

object MemoryBound {

  /** Refuses nothing, and counts in an account of its own. */
  def none: MemoryBound = {
    val limit = Limit(Long.MaxValue, "none", "this JVM")
    new MemoryBound(new MemoryAccount, () => limit, () => ())("")
  }

  /**
   * @param text
   *   Value of the setting
   * @param location
   *   Description of the JVM
   */
  final case class Limit(bytes: Long, text: String, location: String)
}
