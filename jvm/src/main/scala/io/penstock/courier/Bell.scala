package io.penstock.courier

import java.io.EOFException
import java.lang.invoke.{MethodHandles, VarHandle}
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.SocketChannel

/**
 * Records of a lane, the executor's side: said and heard on its connection, and counted in its memory, so that who waits need
 * not sleep at once. For one thread at a time.
 *
 * @param counters
 *   how many records each side has said; no more than hints
 */
final private[courier] class Bell(connection: SocketChannel, counters: ByteBuffer) {
  import Bell._

  private val came = ByteBuffer.allocate(AtOnce * LaneRecord.Bytes)
  private val record = new Array[Byte](LaneRecord.Bytes)
  private var said = 0L
  private var heardBytes = 0L
  came.flip()

  /** Says a record; throws `java.io.IOException` where nobody is there. */
  def say(record: LaneRecord): Unit = {
    val bytes = LaneRecord.encode(record)
    while (bytes.hasRemaining) connection.write(bytes)
    said += 1
    Numbers.setRelease(counters, OfExecutor, said)
  }

  /** Waits for a record; throws `java.io.IOException` where none comes, or what comes is none ([[BrokenLane]]). */
  def next(): LaneRecord = {
    while (came.remaining < LaneRecord.Bytes) {
      look()
      came.compact()
      val count = connection.read(came)
      came.flip()
      if (count < 0) throw new EOFException("the sidecar closed a lane")
      heardBytes += count
    }
    came.get(record)
    LaneRecord.decode(record)
  }

  private def look(): Unit = {
    val heard = heardBytes / LaneRecord.Bytes
    val untilNs = System.nanoTime() + LookNs
    while ((Numbers.getAcquire(counters, OfSidecar): Long) == heard && System.nanoTime() - untilNs < 0)
      Thread.onSpinWait()
  }
}

private[courier] object Bell {
  val CountersBytes: Int = 4096
  private val OfExecutor = 0
  private val OfSidecar = 64
  private val AtOnce = 16

  /** For which one looks at the counter before one sleeps: as long as it takes to be woken. */
  private val LookNs = 50000L

  // In the order of this host's bytes, as Python writes them.
  private val Numbers: VarHandle =
    MethodHandles.byteBufferViewVarHandle(classOf[Array[Long]], ByteOrder.nativeOrder)
}
