package io.penstock.sidecars.transfer

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.util.zip.CRC32C

/** The bytes received on a channel violate the protocol. The channel cannot be used any more. */
final class BrokenChannel(message: String) extends IOException(message)

/** Kinds of records on a channel: docs/PROTOCOL.md, section 12. */
sealed abstract class ChannelRecordKind(val code: Int)

object ChannelRecordKind {

  /** The next slice of a message is in its slot. */
  case object Slice extends ChannelRecordKind(1)

  /** A number of slices have been taken. */
  case object Taken extends ChannelRecordKind(2)

  /** The rest of the message will not be sent. */
  case object GivenUp extends ChannelRecordKind(3)

  /** Tells where a new channel's memory is. */
  case object Memory extends ChannelRecordKind(4)

  val all: Seq[ChannelRecordKind] = Seq(Slice, Taken, GivenUp, Memory)
}

/**
 * A record of a channel.
 *
 * @param number
 *   index of the slice, from 0, or number of slices taken, or id of the process that has a new channel's memory
 * @param messageBytes
 *   size of the whole message, or file descriptor of a new channel's memory
 * @param dataBytes
 *   size of the slice, or size of a new channel's memory
 */
final case class ChannelRecord(kind: ChannelRecordKind, number: Long, messageBytes: Long = 0L, dataBytes: Int = 0)

/** Encodes and decodes records. It does no I/O. */
object ChannelRecord {
  val Bytes = 32
  private val Version = 4
  private val Magic = 0x4c545350 // PSTL
  private val CheckedBytes = 28

  def encode(record: ChannelRecord): ByteBuffer = {
    val out = ByteBuffer.allocate(Bytes).order(LITTLE_ENDIAN)
    out.putInt(Magic).put(Version.toByte).put(record.kind.code.toByte).putShort(0)
    out.putLong(record.number).putLong(record.messageBytes).putInt(record.dataBytes)
    out.putInt(checksum(out.array)).flip()
  }

  /** Decodes a record; throws [[BrokenChannel]] if the bytes are not a valid record. */
  def decode(bytes: Array[Byte]): ChannelRecord = {
    val in = ByteBuffer.wrap(bytes).order(LITTLE_ENDIAN)
    if (in.getInt() != Magic || in.get() != Version) throw new BrokenChannel("a record has an invalid header")
    val code = in.get()
    if (in.getShort() != 0) throw new BrokenChannel("a record has an invalid header")
    val (number, messageBytes, dataBytes) = (in.getLong(), in.getLong(), in.getInt())
    if (in.getInt() != checksum(bytes)) throw new BrokenChannel("the checksum of a record is wrong")
    val kind = ChannelRecordKind.all.find(_.code == code)
      .getOrElse(throw new BrokenChannel(s"unknown kind of record: $code"))
    ChannelRecord(kind, number, messageBytes, dataBytes)
  }

  private def checksum(bytes: Array[Byte]): Int = {
    val crc = new CRC32C
    crc.update(bytes, 0, CheckedBytes)
    crc.getValue.toInt
  }
}
