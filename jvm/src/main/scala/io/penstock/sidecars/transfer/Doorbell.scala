package io.penstock.sidecars.transfer

import java.io.{EOFException, IOException, InterruptedIOException}
import java.lang.invoke.{MethodHandles, VarHandle}
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.SelectionKey.{OP_READ, OP_WRITE}
import java.nio.channels.{CancelledKeyException, ClosedSelectorException, Selector, SocketChannel}
import java.util.concurrent.TimeUnit.NANOSECONDS

/**
 * Exchanges records between an executor and its sidecar, on the executor's side. Records are sent over the connection
 * and counted in shared memory, so that a waiting thread can look at the counter before it sleeps. Only one thread may
 * use a doorbell at a time, except for `close`.
 *
 * A thread that is interrupted while it waits continues for a moment to finish its message. Otherwise the channel, and
 * with it the sidecar, could not be used any more.
 *
 * @param counters
 *   number of records that each side has sent; used as hints only
 */
final private[transfer] class Doorbell(connection: SocketChannel, counters: ByteBuffer) extends AutoCloseable {
  import Doorbell._

  private val received = ByteBuffer.allocate(BufferedRecords * ChannelRecord.Bytes)
  private val record = new Array[Byte](ChannelRecord.Bytes)
  private var sent = 0L
  private var receivedBytes = 0L
  private var interruptedAtNs: Option[Long] = None
  received.flip()
  // Java closes a blocking channel when its thread is interrupted.
  connection.configureBlocking(false)
  private val selector = Selector.open()
  private val key = connection.register(selector, OP_READ)

  /** Sends a record; throws `java.io.IOException` if the sidecar has closed the connection. */
  def say(record: ChannelRecord): Unit = {
    val bytes = ChannelRecord.encode(record)
    while (bytes.hasRemaining) if (connection.write(bytes) == 0) await(OP_WRITE)
    sent += 1
    Numbers.setRelease(counters, OfExecutor, sent)
  }

  /**
   * Waits for a record; throws `java.io.IOException` if the connection ends, and [[BrokenChannel]] if the record is not
   * valid.
   */
  def next(): ChannelRecord = {
    while (received.remaining < ChannelRecord.Bytes) {
      spin()
      received.compact()
      val count =
        try connection.read(received)
        finally received.flip()
      if (count < 0) throw new EOFException("the sidecar closed a channel")
      if (count == 0) await(OP_READ)
      receivedBytes += count
    }
    received.get(record)
    ChannelRecord.decode(record)
  }

  /** Interrupts the thread again if it was interrupted while it waited. */
  def restoreInterrupt(): Unit = {
    if (interruptedAtNs.nonEmpty) Thread.currentThread().interrupt()
    interruptedAtNs = None
  }

  /** Waits for a moment until the counter shows that the sidecar has sent another record. */
  private def spin(): Unit = {
    val records = receivedBytes / ChannelRecord.Bytes
    val untilNs = System.nanoTime() + SpinNs
    while ((Numbers.getAcquire(counters, OfSidecar): Long) == records && System.nanoTime() - untilNs < 0)
      Thread.onSpinWait()
  }

  private def await(operation: Int): Unit =
    try {
      key.interestOps(operation)
      interruptedAtNs match {
        case None => selector.select()
        case Some(atNs) =>
          val leftNs = InterruptedNs - (System.nanoTime() - atNs)
          if (leftNs <= 0)
            throw new InterruptedIOException("the task was interrupted, and the sidecar did not finish in time")
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
  private val BufferedRecords = 16

  /** How long a thread polls the counter before it sleeps: about as long as it takes to wake a thread. */
  private val SpinNs = 50000L

  /** How long an interrupted thread continues. */
  private val InterruptedNs = 1000000000L

  // Native byte order, as Python writes the counters.
  private val Numbers: VarHandle =
    MethodHandles.byteBufferViewVarHandle(classOf[Array[Long]], ByteOrder.nativeOrder)
}
