package org.apache.spark.sql.penstock.state

import java.util.UUID

import scala.collection.mutable

import io.penstock.sidecars.transfer.{AnswerSource, Message, MessageOut}
import io.penstock.state.format._

/** Gives other executors the shards that this one has in memory, and takes those of one that ends. */
object ShardSender extends AnswerSource {

  /** Images in one answer, which has to come within its limit of time: who wants more asks again. */
  private val AnswerBytes = 16 << 20

  /** A message has a gibibyte. What is larger comes from the checkpoint. */
  private val MaxShardBytes = 768L << 20

  override def give(question: Array[Byte]): Either[String, Message] =
    if (ShardQuestion.isOffer(question)) {
      Right(Message.of(ShardOffer.encodeTaken(ShardReceiver.take(ShardOffer.decode(question)).map(_._1))))
    } else Right(answer(ShardQuestion.decode(question)))

  private def answer(asked: ShardQuestion): Message = {
    val store = ShardStores.find(asked.stateRoot, asked.store)
    val parts = mutable.ArrayBuffer[Part]()
    var bytes = 0L
    val answered = asked.wanted.zipWithIndex.map { case (wanted, index) =>
      store.filter(_.has(wanted.shard)).map(_.slot(wanted.shard)) match {
        case Some(_) if bytes >= AnswerBytes => AnsweredShard.Later
        case Some(slot) if slot.countedBytes <= MaxShardBytes =>
          slot.give(wanted.lineage, wanted.have).fold[AnsweredShard](AnsweredShard.NotHeld) { given =>
            val part = partOf(index, given)
            parts += part
            bytes += part.follows.length
            part.follows
          }
        case _ => AnsweredShard.NotHeld
      }
    }
    new Answer(asked.id, answered, parts.toSeq)
  }

  /** What follows of a shard. */
  final private class Part(val index: Int, val follows: AnsweredShard.Follows, val writeTo: BytesOut => Unit)

  private def partOf(index: Int, what: ShardSlot.Given): Part = what match {
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
