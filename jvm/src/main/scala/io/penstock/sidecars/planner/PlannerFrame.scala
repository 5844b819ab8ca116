package io.penstock.sidecars.planner

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.util.zip.CRC32C

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{DeserializationFeature, ObjectMapper}

/** Kinds of frames: docs/PROTOCOL.md, section 9. */
sealed abstract class FrameKind(val code: Int, val name: String)

object FrameKind {
  case object Hello extends FrameKind(1, "hello")
  case object Welcome extends FrameKind(2, "welcome")
  case object Measured extends FrameKind(3, "measured")
  case object Planned extends FrameKind(4, "planned")
  case object Refused extends FrameKind(5, "refused")
  case object Demand extends FrameKind(6, "demand")
  case object Scaled extends FrameKind(7, "scaled")

  val all: Seq[FrameKind] = Seq(Hello, Welcome, Measured, Planned, Refused, Demand, Scaled)
}

/** The received bytes are not a valid frame. The connection cannot be used any more. */
final class BrokenFrame(message: String) extends IOException(message)

/**
 * A message between the driver and the planner sidecar.
 *
 * @param number
 *   number of the question; the answer has the same number
 * @param head
 *   JSON object
 * @param body
 *   Arrow IPC stream, or empty
 */
final case class PlannerFrame(kind: FrameKind, number: Long, head: ObjectNode, body: Array[Byte]) {
  override def equals(other: Any): Boolean = other match {
    case f: PlannerFrame =>
      f.kind == kind && f.number == number && f.head == head && java.util.Arrays.equals(f.body, body)
    case _ => false
  }
  override def hashCode(): Int = (kind, number, head).hashCode
}

/** Encodes and decodes frames: docs/PROTOCOL.md, section 9. It does no I/O. */
object PlannerFrame {
  val Version = 7

  /** Number of bytes to read before the lengths of head and body are known. */
  val PrefixBytes = 28
  val MaxHeadBytes: Int = 1 << 20
  val MaxBodyBytes: Int = 64 << 20

  private val Magic = 0x4b545350 // PSTK
  private val HeaderBytes = 24
  private val json = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)

  def newHead(): ObjectNode = json.createObjectNode()

  /** The decoded first bytes of a frame. */
  final class Prefix private[PlannerFrame] (
      private[PlannerFrame] val header: Array[Byte],
      val kind: FrameKind,
      val number: Long,
      val headBytes: Int,
      val bodyBytes: Int,
      private[PlannerFrame] val checksum: Int
  )

  def encode(frame: PlannerFrame): Array[Byte] = {
    val head = json.writeValueAsBytes(frame.head)
    require(
      head.length <= MaxHeadBytes && frame.body.length <= MaxBodyBytes,
      s"a frame with a head of ${head.length} bytes and a body of ${frame.body.length} bytes is too long; " +
        s"the limits are $MaxHeadBytes and $MaxBodyBytes"
    )
    val out = ByteBuffer.allocate(PrefixBytes + head.length + frame.body.length).order(LITTLE_ENDIAN)
    out.putInt(Magic).put(Version.toByte).put(frame.kind.code.toByte).putShort(0).putLong(frame.number)
    out.putInt(head.length).putInt(frame.body.length)
    val crc = new CRC32C
    crc.update(out.array, 0, HeaderBytes)
    crc.update(head)
    crc.update(frame.body)
    out.putInt(crc.getValue.toInt).put(head).put(frame.body)
    out.array
  }

  /** Decodes the first `PrefixBytes` bytes of a frame; throws [[BrokenFrame]] if they are not valid. */
  def decodePrefix(bytes: Array[Byte]): Prefix = {
    val in = ByteBuffer.wrap(bytes).order(LITTLE_ENDIAN)
    if (in.getInt() != Magic) throw new BrokenFrame("a frame has an invalid header")
    val version = in.get()
    if (version != Version) throw new BrokenFrame(s"protocol version $version, expected $Version")
    val code = in.get()
    if (in.getShort() != 0) throw new BrokenFrame("a frame has an invalid header")
    val number = in.getLong()
    val (head, body) = (in.getInt(), in.getInt())
    if (head < 0 || head > MaxHeadBytes || body < 0 || body > MaxBodyBytes)
      throw new BrokenFrame(s"a frame has invalid lengths: a head of $head bytes and a body of $body bytes")
    val kind = FrameKind.all.find(_.code == code)
      .getOrElse(throw new BrokenFrame(s"unknown kind of frame: $code"))
    new Prefix(bytes.take(HeaderBytes), kind, number, head, body, in.getInt())
  }

  /**
   * Decodes the bytes after a prefix; throws [[BrokenFrame]] if the checksum is wrong or the head is not a JSON object.
   */
  def decodeRest(prefix: Prefix, rest: Array[Byte]): PlannerFrame = {
    if (rest.length != prefix.headBytes + prefix.bodyBytes) throw new BrokenFrame("a frame is truncated")
    val crc = new CRC32C
    crc.update(prefix.header)
    crc.update(rest)
    if (crc.getValue.toInt != prefix.checksum) throw new BrokenFrame("the checksum of a frame is wrong")
    val head =
      try json.readTree(rest, 0, prefix.headBytes)
      catch { case NonFatal(e) => throw new BrokenFrame(s"the head of a frame is not valid JSON: ${e.getMessage}") }
    head match {
      case o: ObjectNode => PlannerFrame(prefix.kind, prefix.number, o, rest.drop(prefix.headBytes))
      case _ => throw new BrokenFrame("the head of a frame is not a JSON object")
    }
  }
}
