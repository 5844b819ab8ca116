package io.penstock.state.format

import java.util.UUID

/**
 * Question of one executor to another for shards of a store, each at a lineage. Specified in docs/PROTOCOL.md, section
 * 13.
 *
 * @param id
 *   Unique id of the question, which the checksums of the answer cover
 * @param stateRoot
 *   State directory of the query
 */
final case class ShardQuestion(id: UUID, stateRoot: String, store: StoreKey, wanted: Seq[WantedShard])

/**
 * A requested shard.
 *
 * @param lineage
 *   Lineage that the shard must have
 * @param have
 *   Lineage that the asking executor has of the shard; [[ShardRefs.NeverWritten]] if it has none
 */
final case class WantedShard(shard: Int, lineage: UUID, have: UUID)

object ShardQuestion {
  private[format] val Version = 4

  /** Kinds of messages: a question for shards, or an offer of shards ([[ShardOffer]]). */
  private[format] val Give = 1
  private[format] val Take = 2

  /** Minimum size of a shard in a message. */
  private val ShardBytes = 17

  def encode(question: ShardQuestion): Array[Byte] = {
    val out = new ByteSink(64 + 36 * question.wanted.size)
    out.putByte(Version)
    out.putByte(Give)
    out.putUuid(question.id)
    out.putString(question.stateRoot)
    StoreKey.put(out, question.store)
    putShards(out, question.wanted.map(w => w.shard -> w.lineage))
    question.wanted.foreach(w => out.putUuid(w.have))
    out.toByteArray
  }

  /** @throws MalformedData if the bytes do not follow the format */
  def decode(bytes: Array[Byte]): ShardQuestion = {
    val in = start(bytes, Give)
    val id = in.getUuid()
    val root = in.getString()
    val store = StoreKey.get(in)
    val wanted = getShards(in).map { case (shard, lineage) => WantedShard(shard, lineage, ShardRefs.NeverWritten) }
    val all = wanted.map(_.copy(have = in.getUuid()))
    in.expectEnd("shard")
    ShardQuestion(id, root, store, all)
  }

  /** Whether a message is an offer. */
  def isOffer(bytes: Array[Byte]): Boolean = bytes.length > 1 && bytes(1) == Take

  private[format] def start(bytes: Array[Byte], kind: Int): ByteSource = {
    val in = new ByteSource(bytes)
    ShardAnswer.checkVersion(in, Version)
    val found = in.getByte()
    if (found != kind) throw new MalformedData(s"message kind $found, expected $kind", 1)
    in
  }

  private[format] def putShards(out: ByteSink, shards: Seq[(Int, UUID)]): Unit = {
    out.putVarint(shards.size)
    shards.foreach { case (shard, lineage) =>
      out.putVarint(shard)
      out.putUuid(lineage)
    }
  }

  private[format] def getShards(in: ByteSource): Seq[(Int, UUID)] =
    Seq.fill(in.getCount("number of shards", in.remaining / ShardBytes)) {
      (in.getNumber("shard", 0L, FileFormat.MaxShards).toInt, in.getUuid())
    }
}

/** The answer for one shard. */
sealed trait AnsweredShard

object AnsweredShard {

  /** The shard is not in memory at the requested lineage. */
  case object NotHeld extends AnsweredShard

  /** The shard is in memory, but there was no room for it in this answer. */
  case object Later extends AnsweredShard

  /** An image or a change set of the shard follows. */
  sealed trait Follows extends AnsweredShard {

    /** Length of the image or change set in bytes. */
    def length: Int
  }

  /**
   * The image of the shard follows.
   *
   * @param deltas
   *   Number of change sets since the last snapshot
   * @param deltaBytes
   *   Size of these change sets
   */
  final case class Held(deltas: Int, deltaBytes: Long, length: Int) extends Follows

  /** The change set follows that leads from the lineage of the asking executor to the requested one. */
  final case class Changed(length: Int) extends Follows
}
