package io.penstock.sidecars.transfer

import java.io.{EOFException, IOException}
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.nio.file.Path

import scala.util.control.NonFatal

/** The rest of a message does not come; the channel can be used further. */
final class GivenUp extends Exception("the sidecar could not finish its answer: the peer broke off")

/**
 * The executor's side of a channel to its sidecar: a ring of memory for each way, and a connection that says what is in them
 * (docs/PROTOCOL.md, section 12). One side speaks at a time; data are copied once on each side. For one thread at a time.
 *
 * @param shared
 *   what the executor sends, what it receives, and the counters of records
 */
final class ExecutorChannel private (connection: SocketChannel, private[transfer] val shared: ChannelMemory)
    extends AutoCloseable {
  private val memory = shared.bytes
  private val doorbell = new Doorbell(connection, memory.slice(ExecutorChannel.CountersAt, Doorbell.CountersBytes))

  /** Behind rings and counters, where this side asks. */
  private[transfer] lazy val receiveBuffer =
    new ReceiveBuffer(memory.slice(ExecutorChannel.MemoryBytes, ReceiveBuffer.Bytes))

  /**
   * Sends a message. Where writing it fails, the other side is told that the rest does not come.
   *
   * @param size
   *   its bytes
   * @param write
   *   writes it, while it is sent
   * @throws java.io.IOException
   *   where the sidecar does not take it
   */
  def send(size: Long)(write: MessageOut => Unit): Unit = {
    require(
      size >= 0 && size <= ExecutorChannel.MaxBytes,
      s"a message of $size bytes, and ${ExecutorChannel.MaxBytes} is the most"
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
   * Waits for a message. All of it is taken, whatever of it is read.
   *
   * @param read
   *   reads it, while it comes
   * @param maxBytes
   *   that it may have: a longer one is none
   * @throws GivenUp
   *   where its rest does not come
   * @throws java.io.IOException
   *   where none comes, or what comes is none ([[BrokenChannel]])
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

  /** Interrupts the calling thread, if it was interrupted while it used the channel. */
  def restoreInterrupt(): Unit = doorbell.restoreInterrupt()

  override def close(): Unit = doorbell.close()

  private object Out extends FreeSlots {
    var sent = 0L
    private var taken = 0L

    override def next(length: Int): ByteBuffer = {
      while (sent - taken >= ExecutorChannel.Slots) doorbell.next() match {
        case ChannelRecord(ChannelRecordKind.Taken, number, _, _) => credit(number)
        case other => throw new BrokenChannel(s"$other in the middle of a message to it")
      }
      ExecutorChannel.slot(memory, 0, sent, length)
    }

    override def filled(messageBytes: Long, length: Int): Unit = {
      doorbell.say(ChannelRecord(ChannelRecordKind.Slice, sent, messageBytes, length))
      sent += 1
    }

    def credit(number: Long): Unit = {
      if (number <= taken || number > sent) throw new BrokenChannel(s"$number slices were taken, of $sent")
      taken = number
    }
  }

  private object In extends FilledSlots {
    private var received = 0L
    private var first: ChannelRecord = _

    /** Waits for a message, and gives its size. */
    def begin(maxBytes: Long): Int = {
      first = record()
      if (first.messageBytes < 0 || first.messageBytes > maxBytes)
        throw new BrokenChannel(s"a message of ${first.messageBytes} bytes")
      first.messageBytes.toInt
    }

    override def next(messageBytes: Long, length: Int): ByteBuffer = {
      val found = if (first != null) first else record()
      first = null
      val due = ChannelRecord(ChannelRecordKind.Slice, received, messageBytes, length)
      if (found != due) throw new BrokenChannel(s"$found came, and $due was due")
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
        case _ => throw new BrokenChannel(s"$record, and a slice was due")
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

  /** Of a channel on which the executor asks, with its receiveBuffer. */
  val AskingBytes: Int = MemoryBytes + ReceiveBuffer.Bytes
  val MaxBytes: Long = 1L << 30
  private val CreditEvery = Slots / 4

  private def slot(memory: ByteBuffer, ring: Int, number: Long, length: Int): ByteBuffer =
    memory.slice(ring + (number % Slots).toInt * SliceBytes, length)

  /**
   * Takes a new channel of a connection on which the sidecar says where its memory is.
   *
   * @param memoryBytes
   *   that it must have
   * @throws java.io.IOException
   *   where that cannot be mapped
   */
  def take(connection: SocketChannel, memoryBytes: Int): ExecutorChannel = take(connection, memoryBytes, None)

  /**
   * The same, and offers memory that an earlier sidecar had: it is used, or closed.
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
      val entry = told(connection, memoryBytes)
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

  /** Where the sidecar says that a channel's memory is. */
  private def told(connection: SocketChannel, memoryBytes: Int): Path = {
    val bytes = ByteBuffer.allocate(ChannelRecord.Bytes)
    while (bytes.hasRemaining)
      if (connection.read(bytes) < 0) throw new EOFException("the sidecar refused a channel")
    ChannelRecord.decode(bytes.array) match {
      case ChannelRecord(ChannelRecordKind.Memory, process, descriptor, `memoryBytes`) =>
        Path.of(s"/proc/$process/fd/$descriptor")
      case other => throw new BrokenChannel(s"$other, and the memory of a channel was due")
    }
  }
}
