package io.penstock.sidecars.transfer

import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN

/** Header that sidecars put before a question: the receive buffer for the answer (docs/PROTOCOL.md, section 12). */
private[transfer] object Envelope {
  private val Version: Byte = 1
  private val Bytes = 24
  private val ProcessAt = 4

  /**
   * Reads the envelope of a question.
   *
   * @return
   *   address of the receive buffer; None if the answer must be sent through the sidecars
   * @throws BrokenChannel
   *   if the bytes are not a valid envelope
   */
  def read(in: MessageIn): Option[ReceiveBufferAddress] = {
    if (in.remaining < Bytes) throw new BrokenChannel(s"a question of ${in.remaining} bytes is too short")
    val envelope = ByteBuffer.wrap(in.take(Bytes)).order(LITTLE_ENDIAN)
    if (envelope.get() != Version) throw new BrokenChannel("a question has an invalid envelope")
    envelope.position(ProcessAt)
    val (process, descriptor) = (envelope.getInt(), envelope.getInt())
    val (limitMs, token) = (envelope.getInt(), envelope.getLong())
    Option.when(process > 0 && token != 0L)(ReceiveBufferAddress(process.toLong, descriptor, limitMs, token))
  }
}
