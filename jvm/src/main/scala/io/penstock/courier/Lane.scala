package io.penstock.courier

import java.io.{EOFException, IOException}
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.nio.file.Path

import scala.util.control.NonFatal

/** The rest of a message does not come; the lane can be used further. */
final class GivenUp extends Exception("the sidecar could not finish its answer: the peer broke off")

/**
 * The executor's side of a lane to its sidecar: a ring of memory for each way, and a connection that says what is in them
 * (docs/PROTOCOL.md, section 12). One side speaks at a time; data are copied once on each side. For one thread at a time.
 *
 * @param shared
 *   what the executor sends, what it receives, and the counters of records
 */
final class Lane private (connection: SocketChannel, private[courier] val shared: LaneMemory) extends AutoCloseable {
  private val memory = shared.bytes
  private val bell = new Bell(connection, memory.slice(Lane.CountersAt, Bell.CountersBytes))

  /** Behind rings and counters, where this side asks. */
  private[courier] lazy val landing = new Landing(memory.slice(Lane.MemoryBytes, Landing.Bytes))

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
    require(size >= 0 && size <= Lane.MostBytes, s"a message of $size bytes, and ${Lane.MostBytes} is the most")
    val message = new SlicedOut(size, Out)
    try {
      write(message)
      message.finish()
    } catch {
      case e: IOException => throw e
      case NonFatal(e) =>
        bell.say(LaneRecord(LaneRecordKind.GivenUp, Out.sent))
        throw e
    }
  }

  /**
   * Waits for a message. All of it is taken, whatever of it is read.
   *
   * @param read
   *   reads it, while it comes
   * @param mostBytes
   *   that it may have: a longer one is none
   * @throws GivenUp
   *   where its rest does not come
   * @throws java.io.IOException
   *   where none comes, or what comes is none ([[BrokenLane]])
   */
  def receive[A](read: MessageIn => A, mostBytes: Long = Lane.MostBytes): A = {
    val message = new SlicedIn(In.begin(mostBytes), In)
    val result =
      try Right(read(message))
      catch {
        case e @ (_: IOException | _: GivenUp) => throw e
        case NonFatal(e) => Left(e)
      }
    message.skip()
    result.fold(throw _, identity)
  }

  /** Interrupts the calling thread, if it was interrupted while it used the lane. */
  def restoreInterrupt(): Unit = bell.restoreInterrupt()

  override def close(): Unit = bell.close()

  private object Out extends FreeSlots {
    var sent = 0L
    private var taken = 0L

    override def next(length: Int): ByteBuffer = {
      while (sent - taken >= Lane.Slots) bell.next() match {
        case LaneRecord(LaneRecordKind.Taken, number, _, _) => credit(number)
        case other => throw new BrokenLane(s"$other in the middle of a message to it")
      }
      Lane.slot(memory, 0, sent, length)
    }

    override def filled(messageBytes: Long, length: Int): Unit = {
      bell.say(LaneRecord(LaneRecordKind.Slice, sent, messageBytes, length))
      sent += 1
    }

    def credit(number: Long): Unit = {
      if (number <= taken || number > sent) throw new BrokenLane(s"$number slices were taken, of $sent")
      taken = number
    }
  }

  private object In extends FilledSlots {
    private var received = 0L
    private var first: LaneRecord = _

    /** Waits for a message, and gives its size. */
    def begin(mostBytes: Long): Int = {
      first = record()
      if (first.messageBytes < 0 || first.messageBytes > mostBytes)
        throw new BrokenLane(s"a message of ${first.messageBytes} bytes")
      first.messageBytes.toInt
    }

    override def next(messageBytes: Long, length: Int): ByteBuffer = {
      val found = if (first != null) first else record()
      first = null
      val due = LaneRecord(LaneRecordKind.Slice, received, messageBytes, length)
      if (found != due) throw new BrokenLane(s"$found came, and $due was due")
      Lane.slot(memory, Lane.RingBytes, received, length)
    }

    override def emptied(): Unit = {
      received += 1
      if (received % Lane.CreditEvery == 0) bell.say(LaneRecord(LaneRecordKind.Taken, received))
    }

    private def record(): LaneRecord = {
      var record = bell.next()
      while (record.kind == LaneRecordKind.Taken) {
        Out.credit(record.number)
        record = bell.next()
      }
      record.kind match {
        case LaneRecordKind.Slice => record
        case LaneRecordKind.GivenUp => throw new GivenUp
        case _ => throw new BrokenLane(s"$record, and a slice was due")
      }
    }
  }
}

object Lane {
  val SliceBytes: Int = 256 << 10
  val Slots = 16
  val RingBytes: Int = Slots * SliceBytes
  private[courier] val CountersAt: Int = 2 * RingBytes
  val MemoryBytes: Int = CountersAt + Bell.CountersBytes

  /** Of a lane on which the executor asks, with its landing. */
  val AskingBytes: Int = MemoryBytes + Landing.Bytes
  val MostBytes: Long = 1L << 30
  private val CreditEvery = Slots / 4

  private def slot(memory: ByteBuffer, ring: Int, number: Long, length: Int): ByteBuffer =
    memory.slice(ring + (number % Slots).toInt * SliceBytes, length)

  /**
   * Takes a new lane of a connection on which the sidecar says where its memory is.
   *
   * @param memoryBytes
   *   that it must have
   * @throws java.io.IOException
   *   where that cannot be mapped
   */
  def take(connection: SocketChannel, memoryBytes: Int): Lane = take(connection, memoryBytes, None)

  /**
   * The same, and offers memory that an earlier sidecar had: it is used, or closed.
   */
  private[courier] def take(connection: SocketChannel, memoryBytes: Int, offered: Option[LaneMemory]): Lane =
    try {
      val at = offered.flatMap(_.descriptor)
      val process = at.fold(0L)(_ => ProcessHandle.current().pid())
      val offer = LaneRecord.encode(LaneRecord(LaneRecordKind.Memory, process, at.fold(0L)(_.toLong), memoryBytes))
      while (offer.hasRemaining) connection.write(offer)
      val entry = told(connection, memoryBytes)
      offered.filter(o => LaneMemory.inodeOf(entry).contains(o.inode)) match {
        case Some(same) => new Lane(connection, same)
        case None =>
          offered.foreach(_.close())
          new Lane(connection, LaneMemory.at(entry, memoryBytes))
      }
    } catch {
      case e: IOException =>
        offered.foreach(_.close())
        throw e
    }

  /** Where the sidecar says that a lane's memory is. */
  private def told(connection: SocketChannel, memoryBytes: Int): Path = {
    val bytes = ByteBuffer.allocate(LaneRecord.Bytes)
    while (bytes.hasRemaining)
      if (connection.read(bytes) < 0) throw new EOFException("the sidecar refused a lane")
    LaneRecord.decode(bytes.array) match {
      case LaneRecord(LaneRecordKind.Memory, process, descriptor, `memoryBytes`) =>
        Path.of(s"/proc/$process/fd/$descriptor")
      case other => throw new BrokenLane(s"$other, and the memory of a lane was due")
    }
  }
}
