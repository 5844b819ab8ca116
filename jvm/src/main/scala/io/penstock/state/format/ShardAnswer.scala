package io.penstock.state.format

import java.util.UUID
import java.util.zip.CRC32C

import org.apache.spark.unsafe.Platform

/**
 * The answer to a [[ShardQuestion]]: what there is of each shard in the order of the question, and then the images and change
 * sets, each with its checksum behind it. Specified in docs/PROTOCOL.md, section 13.
 *
 * Each checksum begins with the question's id and the shard's index in the question: memory that an answer lands in may have
 * parts of the answer to an earlier question, which are whole and right by themselves.
 */
object ShardAnswer {
  import AnsweredShard._

  private val Version = 4
  private val CrcBytes = 4

  /** In place of a shard's. */
  private val HeadIndex = -1

  /** Of a shard. */
  private val MaxHeadBytes = 32L

  /** Bytes of an answer with this head. */
  def bytes(head: Array[Byte], shards: Seq[AnsweredShard]): Long =
    head.length + shards.collect { case f: Follows => f.length.toLong + CrcBytes }.sum

  /** All but the images and change sets. */
  def head(question: UUID, shards: Seq[AnsweredShard]): Array[Byte] = {
    val head = new ByteSink(16 * shards.size + 8)
    head.putByte(Version)
    head.putVarint(shards.size)
    shards.foreach {
      case NotHeld => head.putByte(0)
      case Later => head.putByte(2)
      case Held(deltas, deltaBytes, length) =>
        head.putByte(1)
        head.putVarint(deltas)
        head.putVarint(deltaBytes)
        head.putVarint(length)
      case Changed(length) =>
        head.putByte(3)
        head.putVarint(length)
    }
    val out = new ByteSink(head.size + 2 * CrcBytes)
    out.putInt(head.size)
    out.putBytes(head.array, Platform.BYTE_ARRAY_OFFSET, head.size)
    val crc = begun(question, HeadIndex)
    crc.update(head.array, 0, head.size)
    out.putInt(crc.getValue.toInt)
    out.toByteArray
  }

  private def begun(question: UUID, index: Int): CRC32C = {
    val before = new ByteSink(20)
    before.putUuid(question)
    before.putInt(index)
    val crc = new CRC32C
    crc.update(before.array, 0, before.size)
    crc
  }

  /**
   * Writes an image or a change set, and its checksum behind it.
   *
   * @param index
   *   of the shard in the question
   */
  def writePart(question: UUID, index: Int, out: BytesOut)(write: BytesOut => Unit): Unit = {
    val crc = begun(question, index)
    write { (bytes, from, count) =>
      out.put(bytes, from, count)
      crc.update(bytes, from, count)
    }
    val behind = new ByteSink(CrcBytes)
    behind.putInt(crc.getValue.toInt)
    out.put(behind.array, 0, CrcBytes)
  }

  /**
   * Reads an answer while it comes.
   *
   * @param question
   *   id of the question
   * @param shards
   *   how many the question was about
   * @param part
   *   reads what follows of a shard; what it makes of that where the checksum is wrong is never handed on
   * @param use
   *   gets each shard of the question by its index, and what was made of its part where there is one
   * @throws MalformedData
   *   where the bytes do not follow the format, or a checksum is wrong; shards before may have been used
   */
  def read[A](question: UUID, in: SectionBytes, shards: Int)(part: (Follows, SectionBytes) => A)(
      use: (Int, AnsweredShard, Option[A]) => Unit
  ): Unit = {
    readHead(question, in, shards).zipWithIndex.foreach {
      case (follows: Follows, i) =>
        use(i, follows, Some(readPart(begun(question, i), in, follows.length)(part(follows, _))))
      case (other, i) => use(i, other, None)
    }
    in.expectEnd("shard")
  }

  private def readHead(question: UUID, in: SectionBytes, shards: Int): Seq[AnsweredShard] = {
    val length = int(in)
    if (length < 0 || length > MaxHeadBytes * (shards + 1L)) {
      throw new MalformedData(s"a head of $length bytes for $shards shards", in.consumed)
    }
    val bytes = in.take(length)
    val crc = begun(question, HeadIndex)
    crc.update(bytes)
    if (int(in) != crc.getValue.toInt) throw new MalformedData("the checksum of the head is wrong", in.consumed)
    val head = new ByteSource(bytes)
    checkVersion(head, Version)
    if (head.getCount("number of shards", head.remaining) != shards) {
      throw new MalformedData(s"an answer about other than $shards shards", head.consumed)
    }
    val answered = Seq.fill(shards)(head.getByte() match {
      case 0 => NotHeld
      case 2 => Later
      case 1 => Held(
          head.getNumber("number of changes", 0L, Int.MaxValue).toInt,
          head.getNumber("bytes of changes", 0L, Long.MaxValue),
          head.getNumber("length of an image", 0L, Int.MaxValue).toInt
        )
      case 3 => Changed(head.getNumber("length of changes", 0L, Int.MaxValue).toInt)
      case other => throw new MalformedData(s"shard of kind $other", head.consumed)
    })
    head.expectEnd("shard")
    answered
  }

  private def readPart[A](begun: CRC32C, in: SectionBytes, length: Int)(part: SectionBytes => A): A = {
    if (length > in.remaining - CrcBytes) throw new MalformedData("a shard that is cut off", in.consumed)
    val bytes = new CheckedBytes(length, (_, count) => in.take(count), begun)
    val result =
      try Right(part(bytes))
      catch { case e: MalformedData => Left(e) }
    val crc = bytes.checksum()
    if (int(in) != crc) throw new MalformedData("the checksum of a shard is wrong", in.consumed)
    result.fold(throw _, identity)
  }

  private def int(in: SectionBytes): Int = Platform.getInt(in.take(CrcBytes), Platform.BYTE_ARRAY_OFFSET)

  private[format] def checkVersion(in: ByteSource, version: Int): Unit = {
    val found = in.getByte()
    if (found != version) throw new MalformedData(s"version $found, expected $version", 0)
  }
}
