package io.penstock.state.format

import java.util.UUID

/**
 * What one executor asks another for: shards of a store, each at a lineage. Specified in docs/PROTOCOL.md, section 13.
 *
 * @param stateRoot
 *   the query's state directory
 * @param home
 *   S, how many shards there are without those of pinned hashes
 */
final case class ShardQuestion(stateRoot: String, store: StoreKey, home: Int, wanted: Seq[(Int, UUID)])

object ShardQuestion {
  private val Version = 1

  def encode(question: ShardQuestion): Array[Byte] = {
    val out = new ByteSink(64 + 20 * question.wanted.size)
    out.putByte(Version)
    out.putString(question.stateRoot)
    out.putVarint(question.store.operatorId)
    out.putString(question.store.storeName)
    out.putVarint(question.home)
    out.putVarint(question.wanted.size)
    question.wanted.foreach { case (shard, lineage) =>
      out.putVarint(shard)
      out.putUuid(lineage)
    }
    out.toByteArray
  }

  /** @throws MalformedData where the bytes do not follow the format */
  def decode(bytes: Array[Byte]): ShardQuestion = {
    val in = new ByteSource(bytes)
    ShardAnswer.checkVersion(in, Version)
    val root = in.getString()
    val store = StoreKey(in.getNumber("operator", 0L, Long.MaxValue), in.getString())
    val home = in.getNumber("number of shards", 1L, FileFormat.MostShards).toInt
    val wanted = Seq.fill(in.getCount("number of wanted shards", in.remaining / 17)) {
      (in.getNumber("shard", 0L, FileFormat.MostShards).toInt, in.getUuid())
    }
    in.expectEnd("shard")
    ShardQuestion(root, store, home, wanted)
  }
}

/** What is answered about one shard. */
sealed trait AnsweredShard

object AnsweredShard {

  /** Memory does not have what leads to the lineage. */
  case object NotHeld extends AnsweredShard

  /** It is held, and there was no room for it in this answer. */
  case object Later extends AnsweredShard

  /**
   * Its image.
   *
   * @param deltas
   *   change sets since the last snapshot, and their bytes
   * @param crc
   *   of the image
   */
  final case class Held(deltas: Int, deltaBytes: Long, length: Int, crc: Int) extends AnsweredShard
}

/** The answer: what there is of each shard in the order of the question, and then the images. */
object ShardAnswer {
  import AnsweredShard._

  private val Version = 1
  private val HeadLengthBytes = 4

  /** All but the images, which follow. */
  def encode(shards: Seq[AnsweredShard]): Array[Byte] = {
    val head = new ByteSink(16 * shards.size + 8)
    head.putByte(Version)
    head.putVarint(shards.size)
    shards.foreach {
      case NotHeld => head.putByte(0)
      case Later => head.putByte(2)
      case Held(deltas, deltaBytes, length, crc) =>
        head.putByte(1)
        head.putVarint(deltas)
        head.putVarint(deltaBytes)
        head.putVarint(length)
        head.putInt(crc)
    }
    val out = new ByteSink(head.size + HeadLengthBytes)
    out.putInt(head.size)
    out.putBytes(head.array, org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET, head.size)
    out.toByteArray
  }

  /**
   * Reads an answer.
   *
   * @param use
   *   gets each shard of the question by its index, and the image where there is one, whose checksum is right
   * @throws MalformedData
   *   where the bytes do not follow the format, or a checksum is wrong; shards before may have been used
   */
  def decode(bytes: Array[Byte], from: Int, shards: Int)(
      use: (Int, AnsweredShard, Option[SectionBytes]) => Unit
  ): Unit = {
    val start = new ByteSource(bytes, from, bytes.length)
    val headBytes = start.getInt()
    if (headBytes < 0 || headBytes > start.remaining) throw new MalformedData("a head that is cut off", 0)
    val in = new ByteSource(bytes, from + HeadLengthBytes, from + HeadLengthBytes + headBytes)
    checkVersion(in, Version)
    if (in.getCount("number of shards", in.remaining) != shards) {
      throw new MalformedData(s"an answer about other than $shards shards", in.consumed)
    }
    val answered = Seq.fill(shards)(in.getByte() match {
      case 0 => NotHeld
      case 2 => Later
      case 1 => Held(
          in.getNumber("number of changes", 0L, Int.MaxValue).toInt,
          in.getNumber("bytes of changes", 0L, Long.MaxValue),
          in.getNumber("length of an image", 0L, Int.MaxValue).toInt,
          in.getInt()
        )
      case other => throw new MalformedData(s"shard of kind $other", in.consumed)
    })
    in.expectEnd("shard")
    var at = from + HeadLengthBytes + headBytes
    answered.zipWithIndex.foreach {
      case (held: Held, i) =>
        if (held.length > bytes.length - at) throw new MalformedData("an image that is cut off", at)
        if (FileFormat.crc(bytes, at, held.length) != held.crc) {
          throw new MalformedData("the checksum of an image is wrong", at)
        }
        use(i, held, Some(new ArraySection(bytes, at, held.length)))
        at += held.length
      case (other, i) => use(i, other, None)
    }
    if (at != bytes.length) throw new MalformedData(s"${bytes.length - at} bytes behind the last image", at)
  }

  private[format] def checkVersion(in: ByteSource, version: Int): Unit = {
    val found = in.getByte()
    if (found != version) throw new MalformedData(s"version $found, expected $version", 0)
  }

  final private class ArraySection(bytes: Array[Byte], from: Int, length: Int) extends SectionBytes {
    private var at = 0
    override def consumed: Int = at
    override def remaining: Int = length - at
    override def take(count: Int): Array[Byte] = {
      if (count < 0 || count > remaining) throw new MalformedData(s"$count bytes wanted, $remaining are left", at)
      at += count
      java.util.Arrays.copyOfRange(bytes, from + at - count, from + at)
    }
  }
}
