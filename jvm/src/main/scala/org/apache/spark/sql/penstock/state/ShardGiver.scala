package org.apache.spark.sql.penstock.state

import java.nio.ByteBuffer

import io.penstock.courier.Giver
import io.penstock.state.format._

/** Gives other executors the shards that this one has in memory. */
object ShardGiver extends Giver {

  /** Images in one answer, which is heap on both sides as long as it is under way: who wants more asks again. */
  private val AnswerBytes = 16 << 20

  /** A message has a gibibyte. What is larger comes from the checkpoint. */
  private val MostShardBytes = 768L << 20

  override def give(question: Array[Byte]): Either[String, Seq[ByteBuffer]] = {
    val asked = ShardQuestion.decode(question)
    val store = ShardStores.find(asked.stateRoot, asked.store)
    val images = new ByteSink(1 << 16)
    val answered = asked.wanted.map { case (shard, lineage) =>
      store.filter(_.has(shard)).map(_.slot(shard)) match {
        case Some(slot) if images.size >= AnswerBytes && slot.has(lineage) => AnsweredShard.Later
        case Some(slot) if slot.contentBytes <= MostShardBytes =>
          val at = images.size
          slot.give(lineage, images).fold[AnsweredShard](AnsweredShard.NotHeld) { given =>
            val length = images.size - at
            AnsweredShard.Held(given.deltas, given.deltaBytes, length, FileFormat.crc(images.array, at, length))
          }
        case _ => AnsweredShard.NotHeld
      }
    }
    Right(Seq(ByteBuffer.wrap(ShardAnswer.encode(answered)), ByteBuffer.wrap(images.array, 0, images.size)))
  }
}
