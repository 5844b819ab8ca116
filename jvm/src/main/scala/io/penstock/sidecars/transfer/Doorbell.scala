package io.penstock.sidecars.transfer

import java.io.{EOFException, IOException, InterruptedIOException}
import java.lang.invoke.{MethodHandles, VarHandle}
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.SelectionKey.{OP_READ, OP_WRITE}
import java.nio.channels.{CancelledKeyException, ClosedSelectorException, Selector, SocketChannel}
import java.util.concurrent.TimeUnit.NANOSECONDS

/**
 * Records of a channel, the executor's side: said and heard on its connection, and counted in its memory, so that who waits need
 * not sleep at once. For one thread at a time, but for its end.
 *
 * A thread that is interrupted while it waits goes on for a moment, so that the channel is not left in the middle of a message:
 * the connection would be of no use, nor the sidecar.
 *
 * @param counters
 *   how many records each side has said; no more than hints
 */
final private[transfer] class Doorbell(connection: SocketChannel, counters: ByteBuffer) extends AutoCloseable {
  import Doorbell._

  private val came = ByteBuffer.allocate(AtOnce * ChannelRecord.Bytes)
  private val record = new Array[Byte](ChannelRecord.Bytes)
  private var said = 0L
  private var heardBytes = 0L
  private var interruptedAtNs: Option[Long] = None
  came.flip()
  // A channel that blocks is closed when its thread is interrupted.
  connection.configureBlocking(false)
  private val selector = Selector.open()
  private val key = connection.register(selector, OP_READ)

  /** Says a record; throws `java.io.IOException` where nobody is there. */
  def say(record: ChannelRecord): Unit = {
    val bytes = ChannelRecord.encode(record)
    while (bytes.hasRemaining) if (connection.write(bytes) == 0) await(OP_WRITE)
    said += 1
    Numbers.setRelease(counters, OfExecutor, said)
  }

  /** Waits for a record; throws `java.io.IOException` where none comes, or what comes is none ([[BrokenChannel]]). */
  def next(): ChannelRecord = {
    while (came.remaining < ChannelRecord.Bytes) {
      look()
      came.compact()
      val count =
        try connection.read(came)
        finally came.flip()
      if (count < 0) throw new EOFException("the sidecar closed a channel")
      if (count == 0) await(OP_READ)
      heardBytes += count
    }
    came.get(record)
    ChannelRecord.decode(record)
  }

  /** Interrupts the thread again that was interrupted while it waited. */
  def restoreInterrupt(): Unit = {
    if (interruptedAtNs.nonEmpty) Thread.currentThread().interrupt()
    interruptedAtNs = None
  }

  private def look(): Unit = {
    val heard = heardBytes / ChannelRecord.Bytes
    val untilNs = System.nanoTime() + LookNs
    while ((Numbers.getAcquire(counters, OfSidecar): Long) == heard && System.nanoTime() - untilNs < 0)
      Thread.onSpinWait()
  }

  private def await(what: Int): Unit =
    try {
      key.interestOps(what)
      interruptedAtNs match {
        case None => selector.select()
        case Some(atNs) =>
          val leftNs = InterruptedNs - (System.nanoTime() - atNs)
          if (leftNs <= 0) throw new InterruptedIOException("the task was interrupted, and the sidecar did not finish")
          selector.select(math.max(1L, NANOSECONDS.toMillis(leftNs)))
      }
      selector.selectedKeys.clear()
      if (Thread.interrupted()) interruptedAtNs = Some(interruptedAtNs.getOrElse(System.nanoTime()))
    } catch {
      case _: ClosedSelectorException | _: CancelledKeyException => throw new EOFException("the channel was closed")
    }

  override def close(): Unit =
    try
      try connection.close()
      finally selector.close()
    catch { case _: IOException => () }
}

private[transfer] object Doorbell {
  val CountersBytes: Int = 4096
  private val OfExecutor = 0
  private val OfSidecar = 64
  private val AtOnce = 16

  /** For which one looks at the counter before one sleeps: as long as it takes to be woken. */
  private val LookNs = 50000L

  /** For which an interrupted thread goes on. */
  private val InterruptedNs = 1000000000L

  // In the order of this host's bytes, as Python writes them.
  private val Numbers: VarHandle =
    MethodHandles.byteBufferViewVarHandle(classOf[Array[Long]], ByteOrder.nativeOrder)
}
