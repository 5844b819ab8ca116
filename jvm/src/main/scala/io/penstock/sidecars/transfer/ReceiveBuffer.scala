package io.penstock.sidecars.transfer

import java.lang.invoke.{MethodHandles, VarHandle}
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.locks.LockSupport

/**
 * Memory in which an answer lands that an executor of the same host writes straight to where it is read, past both sidecars:
 * a ring of slots, and how many were filled and emptied (docs/PROTOCOL.md, section 12).
 *
 * A writer that is late may disturb a later answer: what is read has to have checksums of its own.
 */
final private[transfer] class ReceiveBuffer(memory: ByteBuffer) {
  import ReceiveBuffer._

  /** Makes it ready for an answer to whoever is told the token; 0 for nobody. */
  def expect(token: Long): Unit = {
    set(FilledAt, 0L)
    set(EmptiedAt, 0L)
    set(TokenAt, token)
  }

  /**
   * Reads what lands.
   *
   * @param writer
   *   process that writes
   * @param limitMs
   *   from now
   */
  def reader(writer: Long, limitMs: Int): FilledSlots = new FilledSlots {
    private val untilNs = System.nanoTime() + MILLISECONDS.toNanos(limitMs.toLong)
    private var emptiedSlots = 0L

    override def next(messageBytes: Long, length: Int): ByteBuffer = {
      await(untilNs, writer) {
        val filled = get(FilledAt)
        if (filled == Failed) throw new GivenUp
        filled > emptiedSlots
      }
      slot(emptiedSlots, length)
    }

    override def emptied(): Unit = {
      emptiedSlots += 1
      set(EmptiedAt, emptiedSlots)
    }
  }

  /**
   * Writes what is to land.
   *
   * @param token
   *   that it is expected by
   * @param reader
   *   process that lives as long as the reader
   * @param limitMs
   *   from now
   */
  def writer(token: Long, reader: Long, limitMs: Int): FreeSlots = new FreeSlots {
    private val untilNs = System.nanoTime() + MILLISECONDS.toNanos(limitMs.toLong)
    private var filledSlots = 0L

    override def next(length: Int): ByteBuffer = {
      await(untilNs, reader) {
        if (!expects(token)) throw new GivenUp
        filledSlots - get(EmptiedAt) < ExecutorChannel.Slots
      }
      slot(filledSlots, length)
    }

    override def filled(messageBytes: Long, length: Int): Unit = {
      if (!expects(token)) throw new GivenUp
      filledSlots += 1
      set(FilledAt, filledSlots)
    }
  }

  /** Whether it is ready for an answer by that token. */
  def expects(token: Long): Boolean = get(TokenAt) == token

  /** Says that the rest does not come. */
  def fail(token: Long): Unit = if (expects(token)) set(FilledAt, Failed)

  private def slot(number: Long, length: Int): ByteBuffer =
    memory.slice(RingAt + (number % ExecutorChannel.Slots).toInt * ExecutorChannel.SliceBytes, length)

  private def get(at: Int): Long = Numbers.getAcquire(memory, at): Long

  private def set(at: Int, value: Long): Unit = Numbers.setRelease(memory, at, value)
}

private[transfer] object ReceiveBuffer {
  private val TokenAt = 0
  private val FilledAt = 64
  private val EmptiedAt = 128
  private val RingAt = 4096
  private val Failed = -1L

  val Bytes: Int = RingAt + ExecutorChannel.RingBytes

  private val Numbers: VarHandle = MethodHandles.byteBufferViewVarHandle(classOf[Array[Long]], LITTLE_ENDIAN)

  private val Spins = 200
  private val ParkNs = 20000L

  /** After so many waits in a row one looks whether the other process is there. */
  private val LookEvery = 100

  /** Waits until something is the case; the other side is at it, so that it does not take long. */
  private def await(untilNs: Long, other: Long)(isSo: => Boolean): Unit = {
    var waits = 0
    while (!isSo) {
      waits += 1
      if (waits < Spins) Thread.onSpinWait()
      else {
        // Who is interrupted finds out where it goes on.
        if (Thread.currentThread().isInterrupted || System.nanoTime() - untilNs > 0) throw new GivenUp
        if (waits % LookEvery == 0 && !ProcessHandle.of(other).filter(_.isAlive).isPresent) throw new GivenUp
        LockSupport.parkNanos(ParkNs)
      }
    }
  }
}
