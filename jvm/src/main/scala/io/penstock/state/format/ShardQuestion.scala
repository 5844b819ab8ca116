package io.penstock.state.format

import java.util.UUID

/**
 * What one executor asks another for: shards of a store, each at a lineage. Specified in docs/PROTOCOL.md, section 13.
 *
 * @param id
 *   of its own: an answer names the question that it is to
 * @param stateRoot
 *   the query's state directory
 */
final case class ShardQuestion(id: UUID, stateRoot: String, store: StoreKey, wanted: Seq[WantedShard])

/**
 * A shard that is asked for.
 *
 * @param lineage
 *   that it must have
 * @param have
 *   the lineage that is there; [[ShardRefs.NeverWritten]] where there is none
 */
final case class WantedShard(shard: Int, lineage: UUID, have: UUID)

object ShardQuestion {
  private[format] val Version = 4

  /** What is asked: to give shards, or to take them ([[ShardOffer]]). */
  private[format] val Give = 1
  private[format] val Take = 2

  /** Least bytes of a shard. */
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

  /** @throws MalformedData where the bytes do not follow the format */
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

  /** Whether it is an offer. */
  def isOffer(bytes: Array[Byte]): Boolean = bytes.length > 1 && bytes(1) == Take

  private[format] def start(bytes: Array[Byte], what: Int): ByteSource = {
    val in = new ByteSource(bytes)
    ShardAnswer.checkVersion(in, Version)
    val found = in.getByte()
    if (found != what) throw new MalformedData(s"question $found, expected $what", 1)
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

/** What is answered about one shard. */
sealed trait AnsweredShard

object AnsweredShard {

  /** Memory does not have what leads to the lineage. */
  case object NotHeld extends AnsweredShard

  /** It is held, and there was no room for it in this answer. */
  case object Later extends AnsweredShard

  /** Something of it follows. */
  sealed trait Follows extends AnsweredShard {

    /** In bytes. */
    def length: Int
  }

  /**
   * Its image follows.
   *
   * @param deltas
   *   change sets since the last snapshot, and their bytes
   */
  final case class Held(deltas: Int, deltaBytes: Long, length: Int) extends Follows

  /** The change set follows that leads to it from what who asked has. */
  final case class Changed(length: Int) extends Follows
}
