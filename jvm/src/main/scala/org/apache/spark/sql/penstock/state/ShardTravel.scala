package org.apache.spark.sql.penstock.state

import java.nio.ByteBuffer
import java.util.UUID
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.courier.{ExecutorCourier, Outcome}
import io.penstock.state.engine.ShardImage
import io.penstock.state.format._

/**
 * Brings shards from the memory of other executors, by the sidecars. What does not come that way, for whatever reason, is
 * left to the checkpoint: it costs time, and nothing else.
 */
final class ShardTravel(stateRoot: String, store: StoreKey, home: Int) extends Logging {

  /**
   * Asks for shards.
   *
   * @param wanted
   *   each with the lineage that it must have
   * @param use
   *   gets each that came
   * @return
   *   those that did not come
   */
  def bring(
      wanted: Seq[(Int, UUID)],
      holderOf: Int => Option[Holder]
  )(use: (Int, ShardSlot.Loaded) => Unit): Seq[Int] = {
    val came = mutable.Set[Int]()
    val byHolder = wanted.flatMap(w => holderOf(w._1).map(_ -> w)).groupMap(_._1)(_._2)
    byHolder.foreach { case (holder, shards) =>
      try fromOne(holder, shards) { (shard, loaded) =>
          use(shard, loaded)
          came += shard
        }
      catch {
        // Not what goes wrong in using them: memory that is full is full however shards come.
        case e: MalformedData => ShardTravel.tell(s"what ${holder.executor} answered is no answer: ${e.getMessage}")
      }
    }
    wanted.map(_._1).filterNot(came)
  }

  private def fromOne(holder: Holder, wanted: Seq[(Int, UUID)])(use: (Int, ShardSlot.Loaded) => Unit): Unit = {
    var left = wanted
    while (left.nonEmpty) {
      val asked = left
      left = Nil
      val question = ByteBuffer.wrap(ShardQuestion.encode(ShardQuestion(stateRoot, store, home, asked)))
      outcome(holder, question) match {
        case here: Outcome.Here =>
          val later = mutable.ArrayBuffer[(Int, UUID)]()
          ShardAnswer.decode(here.bytes, here.offset, asked.size) {
            case (i, held: AnsweredShard.Held, Some(image)) =>
              use(asked(i)._1, ShardSlot.Loaded(ShardImage.read(image), held.deltas, held.deltaBytes))
            case (i, AnsweredShard.Later, _) => later += asked(i)
            case _ => ()
          }
          // One at least comes with each answer, or there is no end.
          if (later.size < asked.size) left = later.toSeq
        case Outcome.Refused(why) => ShardTravel.tell(s"${holder.executor} gives no shards: $why")
        case Outcome.Lost(why) => ShardTravel.tell(s"${holder.executor} could not be asked for shards: $why")
      }
    }
  }

  private def outcome(holder: Holder, question: ByteBuffer): Outcome =
    try ExecutorCourier.ask(holder.addresses, question, ShardTravel.LimitMs)
    catch { case NonFatal(e) => Outcome.Lost(e.toString) }
}

object ShardTravel extends Logging {
  private val LimitMs = 10000
  private val TellEveryNs = 60000000000L
  private val toldNs = new AtomicLong(System.nanoTime() - TellEveryNs)

  /** Now and then: with an executor that is gone, every task has the same to say. */
  private def tell(what: String): Unit = {
    val (before, now) = (toldNs.get, System.nanoTime())
    if (now - before >= TellEveryNs && toldNs.compareAndSet(before, now)) {
      logWarning(s"Penstock: $what. They come from the checkpoint")
    }
  }
}
