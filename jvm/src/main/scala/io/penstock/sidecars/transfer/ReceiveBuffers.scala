package io.penstock.sidecars.transfer

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
final private[transfer] case class ReceiveBufferAddress(process: Long, descriptor: Int, limitMs: Int, token: Long)

/** Memory of other executors of this host in which this one's answers land; the mappings are kept while those have it. */
private[transfer] object ReceiveBuffers {
  private val MaxKept = 64

  /** Where some process has it. */
  private case class Kept(entry: Path, receiveBuffer: ReceiveBuffer)

  private val kept = new java.util.LinkedHashMap[AnyRef, Kept](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[AnyRef, Kept]): Boolean = size > MaxKept
  }

  /**
   * Memory at a place; None where it cannot be had, as from another container, in which numbers of processes may mean others: the
   * token tells.
   */
  def at(place: ReceiveBufferAddress): Option[ReceiveBuffer] = {
    val entry = Path.of(s"/proc/${place.process}/fd/${place.descriptor}")
    // A number is another file's as soon as its process has ended.
    try ChannelMemory.inodeOf(entry).map(receiveBuffer(entry, _)).filter(_.expects(place.token))
    catch { case _: IOException | _: SecurityException => None }
  }

  private def receiveBuffer(entry: Path, inode: AnyRef): ReceiveBuffer = synchronized {
    val receiveBuffer = Option(kept.get(inode)).fold(map(entry))(_.receiveBuffer)
    // The sidecar of an executor that was started anew has the same memory, elsewhere.
    kept.put(inode, Kept(entry, receiveBuffer))
    receiveBuffer
  }

  private def map(entry: Path): ReceiveBuffer = {
    kept.entrySet.removeIf(e => !ChannelMemory.inodeOf(e.getValue.entry).contains(e.getKey))
    val memory = ChannelMemory.at(entry, ExecutorChannel.AskingBytes)
    memory.close()
    new ReceiveBuffer(memory.bytes.slice(ExecutorChannel.MemoryBytes, ReceiveBuffer.Bytes))
  }
}
