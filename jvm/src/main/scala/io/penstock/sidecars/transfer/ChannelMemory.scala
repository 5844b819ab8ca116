package io.penstock.sidecars.transfer

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * Memory of a channel. It has no name: it is gone with the last process that has it. A sidecar makes it, and the executor hands
 * it to the next one, since Java gives mapped memory back only when it collects garbage.
 *
 * @param file
 *   which keeps it at hand for the next sidecar
 * @param inode
 *   of the file, by which it is recognised in any process
 */
final private[transfer] class ChannelMemory private (file: FileChannel, val inode: AnyRef, val bytes: ByteBuffer)
    extends AutoCloseable {

  /** Its descriptor in this process; None where that cannot be told. */
  def descriptor: Option[Int] =
    try Using.resource(Files.newDirectoryStream(Path.of("/proc/self/fd")))(
        _.asScala.find(ChannelMemory.inodeOf(_).contains(inode)).map(_.getFileName.toString.toInt)
      )
    catch { case _: IOException | _: SecurityException => None }

  /** Makes it as a new one is, for the next sidecar. Nobody may use it. */
  def clear(): Unit = {
    bytes.put(ExecutorChannel.CountersAt, new Array[Byte](Doorbell.CountersBytes))
    if (bytes.capacity == ExecutorChannel.AskingBytes)
      new ReceiveBuffer(bytes.slice(ExecutorChannel.MemoryBytes, ReceiveBuffer.Bytes)).expect(0L)
  }

  /** Gives up to hand it on; what is mapped stays so for as long as it is in use. */
  override def close(): Unit =
    try file.close()
    catch { case _: IOException => () }
}

private[transfer] object ChannelMemory {
  private val Name = "/memfd:penstock-channel (deleted)"

  /** Number of the file that an entry of a process's descriptors stands for; None where it is no memory of a channel. */
  def inodeOf(entry: Path): Option[AnyRef] =
    try Option.when(Files.readSymbolicLink(entry).toString == Name)(Files.getAttribute(entry, "unix:ino"))
    catch { case _: IOException => None }

  /**
   * The memory that a process has as a descriptor.
   *
   * @throws java.io.IOException
   *   where it cannot be mapped, or has another size
   */
  def at(entry: Path, size: Int): ChannelMemory = {
    val inode = inodeOf(entry).getOrElse(throw new IOException(s"$entry is no memory of a channel"))
    val file = FileChannel.open(entry, READ, WRITE)
    try {
      if (file.size != size) throw new IOException(s"$entry has ${file.size} bytes")
      new ChannelMemory(file, inode, file.map(FileChannel.MapMode.READ_WRITE, 0, size.toLong))
    } catch {
      case e: IOException =>
        file.close()
        throw e
    }
  }
}

/** Memory of channels that no sidecar uses any more, for the next one. */
final class ChannelMemories extends AutoCloseable {
  private var idle = List.empty[ChannelMemory]
  private var closed = false

  /** One of so many bytes, as if it were new. */
  private[transfer] def take(size: Int): Option[ChannelMemory] = synchronized {
    val found = idle.find(_.bytes.capacity == size)
    found.foreach { memory =>
      idle = idle.filter(_ ne memory)
      memory.clear()
    }
    found
  }

  /** Keeps what nobody uses in this process. */
  private[transfer] def keep(memory: ChannelMemory): Unit =
    synchronized(if (closed) memory.close() else idle ::= memory)

  override def close(): Unit = synchronized {
    closed = true
    idle.foreach(_.close())
    idle = Nil
  }
}
