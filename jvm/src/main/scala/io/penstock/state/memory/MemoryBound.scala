package io.penstock.state.memory

import io.penstock.conf.Settings
import io.penstock.errors.PenstockException

/**
 * How much heap state may hold in this JVM.
 *
 * @param held
 *   what it holds
 * @param limit
 *   what it may hold, as it is now
 * @param reclaim
 *   drops what no batch needs
 * @param describe
 *   who holds how much, for the error
 */
final class MemoryBound(val held: MemoryAccount, limit: () => MemoryBound.Limit, reclaim: () => Unit)(
    describe: => String
) {

  /** Heap bytes that state may hold. */
  def limitBytes: Long = limit().bytes

  /**
   * Called after bytes were taken, with everything in order, so that a caller may end here.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_TOO_LARGE where state holds more than it may and nothing can be dropped
   */
  def verify(): Unit = if (held.bytes > limit().bytes) reclaimOrRefuse()

  /** One task drops, the others wait for it. */
  private def reclaimOrRefuse(): Unit = synchronized {
    if (held.bytes > limit().bytes) reclaim()
    val l = limit()
    val bytes = held.bytes
    if (bytes > l.bytes) {
      throw new PenstockException(
        "PENSTOCK_STATE_TOO_LARGE",
        s"state holds $bytes bytes of heap, and ${Settings.StateMaxBytes.key}=${l.text} allows ${l.bytes} bytes in " +
          s"${l.location}: $describe. What is committed is safe, and the query goes on from there. Raise " +
          s"${Settings.StateMaxBytes.key}, and spark.executor.memory with it, or use more executors"
      )
    }
  }
}

object MemoryBound {

  /**
   * @param text
   *   the setting's value
   * @param location
   *   the JVM, in words
   */
  final case class Limit(bytes: Long, text: String, location: String)
}
