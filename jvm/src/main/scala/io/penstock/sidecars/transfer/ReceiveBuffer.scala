package io.penstock.sidecars.transfer

import java.lang.invoke.{MethodHandles, VarHandle}
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.locks.LockSupport

/**
 * Memory into which an executor of the same host writes an answer directly, without either sidecar: a ring of slots,
 * and the numbers of filled and emptied slots (docs/PROTOCOL.md, section 12).
 *
 * A late writer may corrupt a later answer, so answers must contain checksums.
 */
final private[transfer] class ReceiveBuffer(memory: ByteBuffer) {
  import ReceiveBuffer._

  /** Prepares the buffer for an answer by a writer that knows the token; with token 0 no answer is accepted. */
  def expect(token: Long): Unit = {
    set(FilledAt, 0L)
    set(EmptiedAt, 0L)
    set(TokenAt, token)
  }

  /**
   * A reader of the answer.
   *
   * @param writer
   *   id of the process that writes the answer
   * @param limitMs
   *   time limit, from now
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
   * A writer of the answer.
   *
   * @param token
   *   token of the expected answer
   * @param reader
   *   id of a process that lives as long as the reader
   * @param limitMs
   *   time limit, from now
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

  /** Whether the buffer expects an answer with this token. */
  def expects(token: Long): Boolean = get(TokenAt) == token

  /** Tells the reader that the rest of the answer will not be written. */
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

  /** Number of waits in a row after which it is checked whether the other process is alive. */
  private val CheckEvery = 100

  /** Waits until a condition is true. Waits are short, because the other side is working on it. */
  private def await(untilNs: Long, other: Long)(condition: => Boolean): Unit = {
    var waits = 0
    while (!condition) {
      waits += 1
      if (waits < Spins) Thread.onSpinWait()
      else {
        // The interrupt flag stays set, so the caller sees the interruption.
        if (Thread.currentThread().isInterrupted || System.nanoTime() - untilNs > 0) throw new GivenUp
        if (waits % CheckEvery == 0 && !ProcessHandle.of(other).filter(_.isAlive).isPresent) throw new GivenUp
        LockSupport.parkNanos(ParkNs)
      }
    }
  }
}
