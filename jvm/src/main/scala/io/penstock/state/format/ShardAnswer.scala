package io.penstock.state.format

import java.util.UUID
import java.util.zip.CRC32C

import org.apache.spark.unsafe.Platform

/**
 * The answer to a [[ShardQuestion]]. The head says, for each shard in the order of the question, whether it follows.
 * The images and change sets come after it, each followed by its checksum. Specified in docs/PROTOCOL.md, section 13.
 *
 * Each checksum covers the id of the question and the index of the shard in the question as well. The receive buffer
 * may still contain intact parts of the answer to an earlier question, which must not be taken for parts of this one.
 */
object ShardAnswer {
  import AnsweredShard._

  private val Version = 4
  private val CrcBytes = 4

  /** Index of the head, in place of the index of a shard. */
  private val HeadIndex = -1

  /** Upper bound of the bytes of a shard in the head. */
  private val MaxHeadBytes = 32L

  /** Size of an answer with this head. */
  def bytes(head: Array[Byte], shards: Seq[AnsweredShard]): Long =
    head.length + shards.collect { case f: Follows => f.length.toLong + CrcBytes }.sum

  /** The answer without the images and change sets. */
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
    val crc = startChecksum(question, HeadIndex)
    crc.update(head.array, 0, head.size)
    out.putInt(crc.getValue.toInt)
    out.toByteArray
  }

  private def startChecksum(question: UUID, index: Int): CRC32C = {
    val prefix = new ByteSink(20)
    prefix.putUuid(question)
    prefix.putInt(index)
    val crc = new CRC32C
    crc.update(prefix.array, 0, prefix.size)
    crc
  }

  /**
   * Writes an image or a change set, followed by its checksum.
   *
   * @param index
   *   Index of the shard in the question
   */
  def writePart(question: UUID, index: Int, out: BytesOut)(write: BytesOut => Unit): Unit = {
    val crc = startChecksum(question, index)
    write { (bytes, from, count) =>
      out.put(bytes, from, count)
      crc.update(bytes, from, count)
    }
    val checksum = new ByteSink(CrcBytes)
    checksum.putInt(crc.getValue.toInt)
    out.put(checksum.array, 0, CrcBytes)
  }

  /**
   * Reads an answer while it arrives.
   *
   * @param question
   *   Id of the question
   * @param shards
   *   Number of shards in the question
   * @param part
   *   Reads the image or change set of a shard. Its result is discarded if the checksum is wrong
   * @param use
   *   Called for each shard with its index in the question, its entry in the head and, if the shard follows, the result
   *   of `part`
   * @throws MalformedData
   *   If the bytes do not follow the format or a checksum is wrong. `use` may have been called for earlier shards
   */
  def read[A](question: UUID, in: SectionBytes, shards: Int)(part: (Follows, SectionBytes) => A)(
      use: (Int, AnsweredShard, Option[A]) => Unit
  ): Unit = {
    readHead(question, in, shards).zipWithIndex.foreach {
      case (follows: Follows, i) =>
        use(i, follows, Some(readPart(startChecksum(question, i), in, follows.length)(part(follows, _))))
      case (other, i) => use(i, other, None)
    }
    in.expectEnd("shard")
  }

  private def readHead(question: UUID, in: SectionBytes, shards: Int): Seq[AnsweredShard] = {
    val length = int(in)
    if (length < 0 || length > MaxHeadBytes * (shards + 1L)) {
      throw new MalformedData(s"invalid head length: $length bytes for $shards shards", in.consumed)
    }
    val bytes = in.take(length)
    val crc = startChecksum(question, HeadIndex)
    crc.update(bytes)
    if (int(in) != crc.getValue.toInt) throw new MalformedData("the checksum of the head is wrong", in.consumed)
    val head = new ByteSource(bytes)
    checkVersion(head, Version)
    if (head.getCount("number of shards", head.remaining) != shards) {
      throw new MalformedData(s"the answer is not about $shards shards", head.consumed)
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
      case other => throw new MalformedData(s"unknown kind $other of an answered shard", head.consumed)
    })
    head.expectEnd("shard")
    answered
  }

  private def readPart[A](crc: CRC32C, in: SectionBytes, length: Int)(part: SectionBytes => A): A = {
    if (length > in.remaining - CrcBytes) throw new MalformedData("the answer ends within a shard", in.consumed)
    val bytes = new CheckedBytes(length, (_, count) => in.take(count), crc)
    val result =
      try Right(part(bytes))
      catch { case e: MalformedData => Left(e) }
    val checksum = bytes.checksum()
    if (int(in) != checksum) throw new MalformedData("the checksum of a shard is wrong", in.consumed)
    result.fold(throw _, identity)
  }

  private def int(in: SectionBytes): Int = Platform.getInt(in.take(CrcBytes), Platform.BYTE_ARRAY_OFFSET)

  private[format] def checkVersion(in: ByteSource, version: Int): Unit = {
    val found = in.getByte()
    if (found != version) throw new MalformedData(s"message version $found, expected $version", 0)
  }
}
