package io.penstock.sidecars.transfer

import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN

/** What sidecars put before a question (docs/PROTOCOL.md, section 12): where the answer may land. */
private[transfer] object Envelope {
  private val Version: Byte = 1
  private val Bytes = 24
  private val ProcessAt = 4

  /**
   * Reads it.
   *
   * @return
   *   None where the answer has to go the way that the question came
   * @throws BrokenChannel
   *   where it is none
   */
  def read(in: MessageIn): Option[ReceiveBufferAddress] = {
    if (in.remaining < Bytes) throw new BrokenChannel(s"a question of ${in.remaining} bytes")
    val envelope = ByteBuffer.wrap(in.take(Bytes)).order(LITTLE_ENDIAN)
    if (envelope.get() != Version) throw new BrokenChannel("no question begins like this")
    envelope.position(ProcessAt)
    val (process, descriptor) = (envelope.getInt(), envelope.getInt())
    val (limitMs, token) = (envelope.getInt(), envelope.getLong())
    Option.when(process > 0 && token != 0L)(ReceiveBufferAddress(process.toLong, descriptor, limitMs, token))
  }
}
