package io.penstock.courier

import java.io.{EOFException, IOException}
import java.nio.ByteBuffer
import java.nio.channels.{FileChannel, SocketChannel}
import java.nio.file.Path
import java.nio.file.StandardOpenOption.{READ, WRITE}

/** The rest of a message does not come; the lane can be used further. */
final class GivenUp extends Exception("the sidecar could not finish its answer: the peer broke off")

/**
 * The executor's side of a lane to its sidecar: a ring of memory for each way, and a connection that says what is in them
 * (docs/PROTOCOL.md, section 12). One side speaks at a time; data are copied once on each side. For one thread at a time.
 *
 * @param memory
 *   first what the executor sends, then what it receives
 */
final class Lane(connection: SocketChannel, memory: ByteBuffer) extends AutoCloseable {
  private val out = memory.slice(0, Lane.RingBytes)
  private val in = memory.slice(Lane.RingBytes, Lane.RingBytes)
  private val read = ByteBuffer.allocate(LaneRecord.Bytes)
  private var sent = 0L
  private var taken = 0L
  private var received = 0L

  /**
   * Sends a message that consists of some parts, one after the other.
   *
   * @throws java.io.IOException
   *   where the sidecar does not take it
   */
  def send(parts: ByteBuffer*): Unit = {
    val size = parts.iterator.map(_.remaining.toLong).sum
    require(size <= Lane.MostBytes, s"a message of $size bytes, and ${Lane.MostBytes} is the most")
    var left = size
    var first = true
    while (first || left > 0) {
      first = false
      while (sent - taken >= Lane.Slots) next() match {
        case LaneRecord(LaneRecordKind.Taken, number, _, _) => credit(number)
        case other => throw new BrokenLane(s"$other in the middle of a message to it")
      }
      val length = math.min(left, Lane.SliceBytes.toLong).toInt
      fill(slot(out, sent, length), parts)
      say(LaneRecord(LaneRecordKind.Slice, sent, size, length))
      sent += 1
      left -= length
    }
  }

  /** Says that there is no message, or not the rest of one. */
  def giveUp(): Unit = say(LaneRecord(LaneRecordKind.GivenUp, sent))

  /**
   * Waits for a message.
   *
   * @throws GivenUp
   *   where its rest does not come
   * @throws java.io.IOException
   *   where none comes, or what comes is none ([[BrokenLane]])
   */
  def receive(): Array[Byte] = {
    var found = nextSlice()
    val size = found.messageBytes
    if (size < 0 || size > Lane.MostBytes) throw new BrokenLane(s"a message of $size bytes")
    val message = new Array[Byte](size.toInt)
    var at = 0
    var first = true
    while (first || at < message.length) {
      if (!first) found = nextSlice()
      first = false
      val length = math.min(message.length - at, Lane.SliceBytes)
      val due = LaneRecord(LaneRecordKind.Slice, received, size, length)
      if (found != due) throw new BrokenLane(s"$found came, and $due was due")
      slot(in, received, length).get(message, at, length)
      received += 1
      at += length
      if (received % Lane.CreditEvery == 0) say(LaneRecord(LaneRecordKind.Taken, received))
    }
    message
  }

  override def close(): Unit =
    try connection.close()
    catch { case _: IOException => () }

  private def nextSlice(): LaneRecord = {
    var record = next()
    while (record.kind == LaneRecordKind.Taken) {
      credit(record.number)
      record = next()
    }
    record.kind match {
      case LaneRecordKind.Slice => record
      case LaneRecordKind.GivenUp => throw new GivenUp
      case _ => throw new BrokenLane(s"$record, and a slice was due")
    }
  }

  private def credit(number: Long): Unit = {
    if (number <= taken || number > sent) throw new BrokenLane(s"$number slices were taken, of $sent")
    taken = number
  }

  private def next(): LaneRecord = {
    read.clear()
    while (read.hasRemaining) if (connection.read(read) < 0) throw new EOFException("the sidecar closed a lane")
    LaneRecord.decode(read.array)
  }

  private def say(record: LaneRecord): Unit = {
    val bytes = LaneRecord.encode(record)
    while (bytes.hasRemaining) connection.write(bytes)
  }

  private def fill(slot: ByteBuffer, parts: Seq[ByteBuffer]): Unit = parts.foreach { part =>
    if (slot.hasRemaining && part.hasRemaining) {
      val count = math.min(slot.remaining, part.remaining)
      slot.put(part.slice(part.position(), count))
      part.position(part.position() + count)
    }
  }

  private def slot(ring: ByteBuffer, number: Long, length: Int): ByteBuffer =
    ring.slice((number % Lane.Slots).toInt * Lane.SliceBytes, length)
}

object Lane {
  val SliceBytes: Int = 256 << 10
  val Slots = 16
  val RingBytes: Int = Slots * SliceBytes
  val MemoryBytes: Int = 2 * RingBytes
  val MostBytes: Long = 1L << 30
  private val CreditEvery = Slots / 4

  /**
   * Takes a new lane of a connection on which the sidecar says where its memory is.
   *
   * @throws java.io.IOException
   *   where that cannot be mapped
   */
  def take(connection: SocketChannel): Lane = {
    val bytes = ByteBuffer.allocate(LaneRecord.Bytes)
    while (bytes.hasRemaining)
      if (connection.read(bytes) < 0) throw new EOFException("the sidecar refused a lane")
    LaneRecord.decode(bytes.array) match {
      case LaneRecord(LaneRecordKind.Memory, process, descriptor, MemoryBytes) =>
        // It has no other name: nothing is left of it when both processes are gone.
        val file = FileChannel.open(Path.of(s"/proc/$process/fd/$descriptor"), READ, WRITE)
        try new Lane(connection, file.map(FileChannel.MapMode.READ_WRITE, 0, MemoryBytes))
        finally file.close()
      case other => throw new BrokenLane(s"$other, and the memory of a lane was due")
    }
  }
}
