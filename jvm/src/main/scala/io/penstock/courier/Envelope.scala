package io.penstock.courier

import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN

/** What sidecars put before a question (docs/PROTOCOL.md, section 12): where the answer may land. */
private[courier] object Envelope {
  private val Version: Byte = 1
  private val Bytes = 24
  private val ProcessAt = 4

  /**
   * Reads it.
   *
   * @return
   *   None where the answer has to go the way that the question came
   * @throws BrokenLane
   *   where it is none
   */
  def read(in: MessageIn): Option[LandingPlace] = {
    if (in.remaining < Bytes) throw new BrokenLane(s"a question of ${in.remaining} bytes")
    val envelope = ByteBuffer.wrap(in.take(Bytes)).order(LITTLE_ENDIAN)
    if (envelope.get() != Version) throw new BrokenLane("no question begins like this")
    envelope.position(ProcessAt)
    val (process, descriptor) = (envelope.getInt(), envelope.getInt())
    val (limitMs, token) = (envelope.getInt(), envelope.getLong())
    Option.when(process > 0 && token != 0L)(LandingPlace(process.toLong, descriptor, limitMs, token))
  }
}
