package io.penstock.courier

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.util.zip.CRC32C

/** What came on a lane is nothing that a sidecar sends: nothing that follows can be trusted. */
final class BrokenLane(what: String) extends IOException(what)

/** What a record of a lane is: docs/PROTOCOL.md, section 12. */
sealed abstract class LaneRecordKind(val code: Int)

object LaneRecordKind {

  /** The next slice of a message is in its slot. */
  case object Slice extends LaneRecordKind(1)

  /** So many slices were taken. */
  case object Taken extends LaneRecordKind(2)

  /** The rest of the message does not come. */
  case object GivenUp extends LaneRecordKind(3)

  /** Where a new lane's memory is. */
  case object Memory extends LaneRecordKind(4)

  val all: Seq[LaneRecordKind] = Seq(Slice, Taken, GivenUp, Memory)
}

/**
 * A record of a lane.
 *
 * @param number
 *   of the slice, from 0; of slices that were taken; of the process that has a new lane's memory
 * @param messageBytes
 *   of the whole message; descriptor of a new lane's memory
 * @param dataBytes
 *   of the slice; bytes of a new lane's memory
 */
final case class LaneRecord(kind: LaneRecordKind, number: Long, messageBytes: Long = 0L, dataBytes: Int = 0)

/** Records to bytes and back. It does no I/O. */
object LaneRecord {
  val Bytes = 32
  private val Version = 4
  private val Magic = 0x4c545350 // PSTL
  private val CheckedBytes = 28

  def encode(record: LaneRecord): ByteBuffer = {
    val out = ByteBuffer.allocate(Bytes).order(LITTLE_ENDIAN)
    out.putInt(Magic).put(Version.toByte).put(record.kind.code.toByte).putShort(0)
    out.putLong(record.number).putLong(record.messageBytes).putInt(record.dataBytes)
    out.putInt(checksum(out.array)).flip()
  }

  /** Reads a record; throws [[BrokenLane]] where the bytes are none. */
  def decode(bytes: Array[Byte]): LaneRecord = {
    val in = ByteBuffer.wrap(bytes).order(LITTLE_ENDIAN)
    if (in.getInt() != Magic || in.get() != Version) throw new BrokenLane("no record begins like this")
    val code = in.get()
    if (in.getShort() != 0) throw new BrokenLane("no record begins like this")
    val (number, messageBytes, dataBytes) = (in.getLong(), in.getLong(), in.getInt())
    if (in.getInt() != checksum(bytes)) throw new BrokenLane("the checksum of a record is wrong")
    val kind = LaneRecordKind.all.find(_.code == code)
      .getOrElse(throw new BrokenLane(s"records of kind $code are not known"))
    LaneRecord(kind, number, messageBytes, dataBytes)
  }

  private def checksum(bytes: Array[Byte]): Int = {
    val crc = new CRC32C
    crc.update(bytes, 0, CheckedBytes)
    crc.getValue.toInt
  }
}
