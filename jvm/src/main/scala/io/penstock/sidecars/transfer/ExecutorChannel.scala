package io.penstock.sidecars.transfer

import java.io.{EOFException, IOException}
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.nio.file.Path

import scala.util.control.NonFatal

/** The rest of a message will not be sent. The channel can still be used. */
final class GivenUp extends Exception("the sidecar could not finish its answer: the peer broke off")

/**
 * The executor's side of a channel to its sidecar: a ring buffer in shared memory for each direction, and a connection
 * with records about their content (docs/PROTOCOL.md, section 12). Only one side sends at a time, and data are copied
 * once on each side. Only one thread may use a channel at a time.
 *
 * @param shared
 *   shared memory with both ring buffers and the counters of records
 */
final class ExecutorChannel private (connection: SocketChannel, private[transfer] val shared: ChannelMemory)
    extends AutoCloseable {
  private val memory = shared.bytes
  private val doorbell = new Doorbell(connection, memory.slice(ExecutorChannel.CountersAt, Doorbell.CountersBytes))

  /**
   * The receive buffer, which follows the rings and the counters. Only channels on which the executor asks have one.
   */
  private[transfer] lazy val receiveBuffer =
    new ReceiveBuffer(memory.slice(ExecutorChannel.MemoryBytes, ReceiveBuffer.Bytes))

  /**
   * Sends a message. If writing it fails, the sidecar is told that the rest will not be sent.
   *
   * @param size
   *   size of the message in bytes
   * @param write
   *   writes the message while it is sent
   * @throws java.io.IOException
   *   if the sidecar does not take the message
   */
  def send(size: Long)(write: MessageOut => Unit): Unit = {
    require(
      size >= 0 && size <= ExecutorChannel.MaxBytes,
      s"a message must have 0 to ${ExecutorChannel.MaxBytes} bytes, found $size"
    )
    val message = new SlicedOut(size, Out)
    try {
      write(message)
      message.finish()
    } catch {
      case e: IOException => throw e
      case NonFatal(e) =>
        doorbell.say(ChannelRecord(ChannelRecordKind.GivenUp, Out.sent))
        throw e
    }
  }

  /**
   * Waits for a message. The whole message is consumed, even if `read` reads only a part of it.
   *
   * @param read
   *   reads the message while it arrives
   * @param maxBytes
   *   largest size of a valid message
   * @throws GivenUp
   *   if the rest of the message will not be sent
   * @throws java.io.IOException
   *   if the connection ends, or the sidecar violates the protocol ([[BrokenChannel]])
   */
  def receive[A](read: MessageIn => A, maxBytes: Long = ExecutorChannel.MaxBytes): A = {
    val message = new SlicedIn(In.begin(maxBytes), In)
    val result =
      try Right(read(message))
      catch {
        case e @ (_: IOException | _: GivenUp) => throw e
        case NonFatal(e) => Left(e)
      }
    message.skip()
    result.fold(throw _, identity)
  }

  /** Interrupts the calling thread again if it was interrupted while it used the channel. */
  def restoreInterrupt(): Unit = doorbell.restoreInterrupt()

  override def close(): Unit = doorbell.close()

  private object Out extends FreeSlots {
    var sent = 0L
    private var taken = 0L

    override def next(length: Int): ByteBuffer = {
      while (sent - taken >= ExecutorChannel.Slots) doorbell.next() match {
        case ChannelRecord(ChannelRecordKind.Taken, number, _, _) => credit(number)
        case other => throw new BrokenChannel(s"unexpected $other while a message is sent")
      }
      ExecutorChannel.slot(memory, 0, sent, length)
    }

    override def filled(messageBytes: Long, length: Int): Unit = {
      doorbell.say(ChannelRecord(ChannelRecordKind.Slice, sent, messageBytes, length))
      sent += 1
    }

    def credit(number: Long): Unit = {
      if (number <= taken || number > sent)
        throw new BrokenChannel(s"the sidecar took $number slices, expected more than $taken and at most $sent")
      taken = number
    }
  }

  private object In extends FilledSlots {
    private var received = 0L
    private var first: ChannelRecord = _

    /** Waits for the beginning of a message and returns the message's size. */
    def begin(maxBytes: Long): Int = {
      first = record()
      if (first.messageBytes < 0 || first.messageBytes > maxBytes)
        throw new BrokenChannel(s"a message must have 0 to $maxBytes bytes, found ${first.messageBytes}")
      first.messageBytes.toInt
    }

    override def next(messageBytes: Long, length: Int): ByteBuffer = {
      val found = if (first != null) first else record()
      first = null
      val expected = ChannelRecord(ChannelRecordKind.Slice, received, messageBytes, length)
      if (found != expected) throw new BrokenChannel(s"received $found, expected $expected")
      ExecutorChannel.slot(memory, ExecutorChannel.RingBytes, received, length)
    }

    override def emptied(): Unit = {
      received += 1
      if (received % ExecutorChannel.CreditEvery == 0) doorbell.say(ChannelRecord(ChannelRecordKind.Taken, received))
    }

    private def record(): ChannelRecord = {
      var record = doorbell.next()
      while (record.kind == ChannelRecordKind.Taken) {
        Out.credit(record.number)
        record = doorbell.next()
      }
      record.kind match {
        case ChannelRecordKind.Slice => record
        case ChannelRecordKind.GivenUp => throw new GivenUp
        case _ => throw new BrokenChannel(s"received $record, expected a slice")
      }
    }
  }
}

object ExecutorChannel {
  val SliceBytes: Int = 256 << 10
  val Slots = 16
  val RingBytes: Int = Slots * SliceBytes
  private[transfer] val CountersAt: Int = 2 * RingBytes
  val MemoryBytes: Int = CountersAt + Doorbell.CountersBytes

  /** Size of the memory of a channel on which the executor asks, including the receive buffer. */
  val AskingBytes: Int = MemoryBytes + ReceiveBuffer.Bytes
  val MaxBytes: Long = 1L << 30
  private val CreditEvery = Slots / 4

  private def slot(memory: ByteBuffer, ring: Int, number: Long, length: Int): ByteBuffer =
    memory.slice(ring + (number % Slots).toInt * SliceBytes, length)

  /**
   * Opens a channel on a new connection. The sidecar sends the location of the channel's memory.
   *
   * @param memoryBytes
   *   expected size of the memory
   * @throws java.io.IOException
   *   if the memory cannot be mapped
   */
  def take(connection: SocketChannel, memoryBytes: Int): ExecutorChannel = take(connection, memoryBytes, None)

  /**
   * Opens a channel and offers the sidecar the memory of an earlier one. If the sidecar does not use it, it is closed.
   */
  private[transfer] def take(
      connection: SocketChannel,
      memoryBytes: Int,
      offered: Option[ChannelMemory]
  ): ExecutorChannel =
    try {
      val at = offered.flatMap(_.descriptor)
      val process = at.fold(0L)(_ => ProcessHandle.current().pid())
      val offer =
        ChannelRecord.encode(ChannelRecord(ChannelRecordKind.Memory, process, at.fold(0L)(_.toLong), memoryBytes))
      while (offer.hasRemaining) connection.write(offer)
      val entry = memoryEntry(connection, memoryBytes)
      offered.filter(o => ChannelMemory.inodeOf(entry).contains(o.inode)) match {
        case Some(same) => new ExecutorChannel(connection, same)
        case None =>
          offered.foreach(_.close())
          new ExecutorChannel(connection, ChannelMemory.at(entry, memoryBytes))
      }
    } catch {
      case e: IOException =>
        offered.foreach(_.close())
        throw e
    }

  /** Receives the path of the file descriptor of a channel's memory. */
  private def memoryEntry(connection: SocketChannel, memoryBytes: Int): Path = {
    val bytes = ByteBuffer.allocate(ChannelRecord.Bytes)
    while (bytes.hasRemaining)
      if (connection.read(bytes) < 0) throw new EOFException("the sidecar refused a channel")
    ChannelRecord.decode(bytes.array) match {
      case ChannelRecord(ChannelRecordKind.Memory, process, descriptor, `memoryBytes`) =>
        Path.of(s"/proc/$process/fd/$descriptor")
      case other => throw new BrokenChannel(s"received $other, expected the memory of a channel")
    }
  }
}
