package io.penstock.sidecars.transfer

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * Shared memory of a channel. It is an anonymous file (memfd) that is freed with the last process that has it open. A
 * sidecar creates it. The executor passes it on to the next sidecar, because Java unmaps memory only when it collects
 * garbage.
 *
 * @param file
 *   open file, kept so that the memory can be passed to the next sidecar
 * @param inode
 *   inode of the file, which identifies the memory in all processes
 * @param bytes
 *   the mapped memory
 */
final private[transfer] class ChannelMemory private (file: FileChannel, val inode: AnyRef, val bytes: ByteBuffer)
    extends AutoCloseable {

  /** File descriptor of the memory in this process; None if it cannot be determined. */
  def descriptor: Option[Int] =
    try Using.resource(Files.newDirectoryStream(Path.of("/proc/self/fd")))(
        _.asScala.find(ChannelMemory.inodeOf(_).contains(inode)).map(_.getFileName.toString.toInt)
      )
    catch { case _: IOException | _: SecurityException => None }

  /** Resets the memory for the next sidecar. Nobody may use the memory at this time. */
  def clear(): Unit = {
    bytes.put(ExecutorChannel.CountersAt, new Array[Byte](Doorbell.CountersBytes))
    if (bytes.capacity == ExecutorChannel.AskingBytes)
      new ReceiveBuffer(bytes.slice(ExecutorChannel.MemoryBytes, ReceiveBuffer.Bytes)).expect(0L)
  }

  /** Closes the file, so that the memory cannot be passed on. The mapping stays valid while it is in use. */
  override def close(): Unit =
    try file.close()
    catch { case _: IOException => () }
}

private[transfer] object ChannelMemory {
  private val Name = "/memfd:penstock-channel (deleted)"

  /** Inode of the file behind an entry of `/proc/<pid>/fd`; None if the file is not a channel's memory. */
  def inodeOf(entry: Path): Option[AnyRef] =
    try Option.when(Files.readSymbolicLink(entry).toString == Name)(Files.getAttribute(entry, "unix:ino"))
    catch { case _: IOException => None }

  /**
   * Maps the memory behind a file descriptor of a process.
   *
   * @param entry
   *   path of the descriptor, `/proc/<pid>/fd/<descriptor>`
   * @param size
   *   expected size in bytes
   * @throws java.io.IOException
   *   if the memory cannot be mapped or has another size
   */
  def at(entry: Path, size: Int): ChannelMemory = {
    val inode = inodeOf(entry).getOrElse(throw new IOException(s"$entry is not the memory of a channel"))
    val file = FileChannel.open(entry, READ, WRITE)
    try {
      if (file.size != size) throw new IOException(s"$entry has ${file.size} bytes, expected $size")
      new ChannelMemory(file, inode, file.map(FileChannel.MapMode.READ_WRITE, 0, size.toLong))
    } catch {
      case e: IOException =>
        file.close()
        throw e
    }
  }
}

/** Memories of channels that no sidecar uses any more, kept for the next sidecar. */
final class ChannelMemories extends AutoCloseable {
  private var idle = List.empty[ChannelMemory]
  private var closed = false

  /** Takes a memory of this size and resets it; None if there is none. */
  private[transfer] def take(size: Int): Option[ChannelMemory] = synchronized {
    val found = idle.find(_.bytes.capacity == size)
    found.foreach { memory =>
      idle = idle.filter(_ ne memory)
      memory.clear()
    }
    found
  }

  /** Keeps a memory that is not in use in this process any more. */
  private[transfer] def keep(memory: ChannelMemory): Unit =
    synchronized(if (closed) memory.close() else idle ::= memory)

  override def close(): Unit = synchronized {
    closed = true
    idle.foreach(_.close())
    idle = Nil
  }
}
