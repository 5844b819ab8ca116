package io.penstock.sidecars.transfer

import java.io.IOException
import java.nio.file.Path

import io.penstock.context.Component

/**
 * Address of the receive buffer for the answer to a question.
 *
 * @param process
 *   process id of the asking executor's sidecar
 * @param descriptor
 *   file descriptor of the memory in that process
 * @param limitMs
 *   time limit for the answer
 * @param token
 *   token of the expected answer
 */
final private[transfer] case class ReceiveBufferAddress(process: Long, descriptor: Int, limitMs: Int, token: Long)

/**
 * Receive buffers of other executors on this host. Mappings are kept as long as the other processes have the memory.
 *
 * An object, because mappings stay valid when the sidecar of this executor is started again. The executor context owns
 * it, and forgets the mappings.
 */
object ReceiveBuffers extends Component {
  private val MaxKept = 64

  /** A mapped receive buffer, with the path of a descriptor under which some process has it. */
  private case class Kept(entry: Path, receiveBuffer: ReceiveBuffer)

  private val kept = new java.util.LinkedHashMap[AnyRef, Kept](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[AnyRef, Kept]): Boolean = size > MaxKept
  }

  /**
   * The receive buffer at an address; None if it cannot be opened, for example because it belongs to another container.
   * Process ids in another container may denote other processes; the token detects this.
   */
  private[transfer] def at(address: ReceiveBufferAddress): Option[ReceiveBuffer] = {
    val entry = Path.of(s"/proc/${address.process}/fd/${address.descriptor}")
    // Buffers are identified by inode, because the path may denote another file when the process has ended.
    try ChannelMemory.inodeOf(entry).map(receiveBuffer(entry, _)).filter(_.expects(address.token))
    catch { case _: IOException | _: SecurityException => None }
  }

  override def held: Map[String, Long] = Map("mappings" -> synchronized(kept.size.toLong))

  override def close(): Unit = synchronized(kept.clear())

  private def receiveBuffer(entry: Path, inode: AnyRef): ReceiveBuffer = synchronized {
    val receiveBuffer = Option(kept.get(inode)).fold(map(entry))(_.receiveBuffer)
    // A restarted sidecar has the same memory under another path.
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
