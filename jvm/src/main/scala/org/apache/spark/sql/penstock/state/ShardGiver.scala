package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import io.penstock.courier.{Giver, Message, MessageOut}
import io.penstock.state.engine.ShardImage
import io.penstock.state.format._

/** Gives other executors the shards that this one has in memory, and takes those of one that ends. */
object ShardGiver extends Giver {

  /** Images in one answer, which has to come within its limit of time: who wants more asks again. */
  private val AnswerBytes = 16 << 20

  /** A message has a gibibyte. What is larger comes from the checkpoint. */
  private val MostShardBytes = 768L << 20

  override def give(question: Array[Byte]): Either[String, Message] =
    if (ShardQuestion.isOffer(question)) {
      Right(Message.of(ShardOffer.encodeTaken(ShardTaker.take(ShardOffer.decode(question)).map(_._1))))
    } else Right(answer(ShardQuestion.decode(question)))

  private def answer(asked: ShardQuestion): Message = {
    val store = ShardStores.find(asked.stateRoot, asked.store)
    val images = mutable.ArrayBuffer[ShardImage]()
    var imageBytes = 0L
    val answered = asked.wanted.map { case (shard, lineage) =>
      store.filter(_.has(shard)).map(_.slot(shard)) match {
        case Some(slot) if imageBytes >= AnswerBytes && slot.has(lineage) => AnsweredShard.Later
        case Some(slot) if slot.contentBytes <= MostShardBytes =>
          slot.give(lineage).fold[AnsweredShard](AnsweredShard.NotHeld) { given =>
            images += given.image
            imageBytes += given.image.bytes
            AnsweredShard.Held(given.deltas, given.deltaBytes, given.image.bytes.toInt)
          }
        case _ => AnsweredShard.NotHeld
      }
    }
    new Answer(answered, images.toSeq)
  }

  final private class Answer(answered: Seq[AnsweredShard], images: Seq[ShardImage]) extends Message {
    private val head = ShardAnswer.head(answered)

    override def bytes: Long = ShardAnswer.bytes(head, answered)

    override def writeTo(out: MessageOut): Unit = {
      out.put(head)
      images.foreach(image => ShardAnswer.writeImage(out.put(_, _, _))(image.writeTo))
    }
  }
}
