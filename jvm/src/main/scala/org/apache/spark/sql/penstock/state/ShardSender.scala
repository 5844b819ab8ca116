package org.apache.spark.sql.penstock.state

import java.util.UUID

import scala.collection.mutable

import io.penstock.sidecars.transfer.{AnswerSource, Message, MessageOut}
import io.penstock.state.format._

/**
 * Sends shards that this executor holds in memory to other executors, and takes the shards of a leaving executor.
 *
 * @param stores
 *   the shards of this executor
 * @param receiver
 *   takes shards
 */
final class ShardSender(stores: ShardStores, receiver: ShardReceiver) extends AnswerSource {
  import ShardSender._

  override def give(question: Array[Byte]): Either[String, Message] =
    if (ShardQuestion.isOffer(question)) {
      Right(Message.of(ShardOffer.encodeTaken(receiver.take(ShardOffer.decode(question)).map(_._1))))
    } else Right(answer(ShardQuestion.decode(question)))

  private def answer(asked: ShardQuestion): Message = {
    val store = stores.find(asked.stateRoot, asked.store)
    val parts = mutable.ArrayBuffer[Part]()
    var bytes = 0L
    val answered = asked.wanted.zipWithIndex.map { case (wanted, index) =>
      store.filter(_.has(wanted.shard)).map(_.slot(wanted.shard)) match {
        case Some(_) if bytes >= AnswerBytes => AnsweredShard.Later
        case Some(slot) if slot.countedBytes <= MaxShardBytes =>
          slot.give(wanted.lineage, wanted.have).fold[AnsweredShard](AnsweredShard.NotHeld) { held =>
            val part = partOf(index, held)
            parts += part
            bytes += part.follows.length
            part.follows
          }
        case _ => AnsweredShard.NotHeld
      }
    }
    new Answer(asked.id, answered, parts.toSeq)
  }

  /** Image or changes of a shard, which follow behind the head of the answer. */
  final private class Part(val index: Int, val follows: AnsweredShard.Follows, val writeTo: BytesOut => Unit)

  private def partOf(index: Int, held: ShardSlot.Given): Part = held match {
    case ShardSlot.GivenImage(image, deltas, deltaBytes) =>
      new Part(index, AnsweredShard.Held(deltas, deltaBytes, image.bytes.toInt), image.writeTo(_): Unit)
    case ShardSlot.GivenChanges(array, offset, length) =>
      new Part(index, AnsweredShard.Changed(length), _.put(array, offset, length))
  }

  final private class Answer(question: UUID, answered: Seq[AnsweredShard], parts: Seq[Part]) extends Message {
    private val head = ShardAnswer.head(question, answered)

    override def bytes: Long = ShardAnswer.bytes(head, answered)

    override def writeTo(out: MessageOut): Unit = {
      out.put(head)
      parts.foreach(part => ShardAnswer.writePart(question, part.index, out.put(_, _, _))(part.writeTo))
    }
  }
}

private object ShardSender {

  /**
   * An answer with this many bytes gets no further shards, so that it arrives within its time limit. The executor that
   * asks asks again for the others.
   */
  val AnswerBytes = 16 << 20

  /** Largest shard that is sent: a message has at most 1 GiB. Larger shards are read from the checkpoint. */
  val MaxShardBytes = 768L << 20
}
