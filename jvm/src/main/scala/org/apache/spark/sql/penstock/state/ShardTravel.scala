package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.sidecars.transfer.{ExecutorTransfer, MessageIn, Outcome, PeerQuestions}
import io.penstock.state.engine.ShardImage
import io.penstock.state.format._

/**
 * Brings shards from the memory of other executors, by the sidecars. What does not come that way, for whatever reason, is
 * left to the checkpoint: it costs time, and nothing else.
 */
final class ShardTravel(stateRoot: String, store: StoreKey, peers: PeerQuestions = ExecutorTransfer) extends Logging {

  /**
   * Asks for shards.
   *
   * @param wanted
   *   each with the lineage that it must have
   * @param holdersOf
   *   who may have a shard, in the order in which they are asked
   * @param use
   *   gets each that came, and the transport by which it did
   * @return
   *   those that did not come
   */
  def bring(wanted: Seq[WantedShard], holdersOf: Int => Seq[Holder])(
      use: (Int, ShardTravel.Came, String) => Unit
  ): Seq[Int] = {
    val most = wanted.map(w => holdersOf(w.shard).size).maxOption.getOrElse(0)
    val left = (0 until most).foldLeft(wanted) { (left, turn) =>
      val missing = bringFrom(left, shard => holdersOf(shard).lift(turn))(use).toSet
      left.filter(w => missing(w.shard))
    }
    left.map(_.shard)
  }

  private def bringFrom(wanted: Seq[WantedShard], holderOf: Int => Option[Holder])(
      use: (Int, ShardTravel.Came, String) => Unit
  ): Seq[Int] = {
    val came = mutable.Set[Int]()
    val byHolder = wanted.flatMap(w => holderOf(w.shard).map(_ -> w)).groupMap(_._1)(_._2)
    byHolder.foreach { case (holder, shards) =>
      try
        shards.grouped(ShardTravel.AtOnce).foreach(fromOne(holder, _) { (shard, loaded, by) =>
          try use(shard, loaded, by)
          catch { case NonFatal(e) => throw new ShardTravel.NotUsed(e) }
          came += shard
        })
      catch {
        case e: ShardTravel.NotUsed => throw e.getCause
        case e: MalformedData => ShardTravel.tell(s"what ${holder.executor} answered is no answer: ${e.getMessage}")
        // What else goes wrong here, the checkpoint shows again or does not have.
        case NonFatal(e) => ShardTravel.tell(s"shards of ${holder.executor} could not be taken: $e")
      }
    }
    wanted.map(_.shard).filterNot(came)
  }

  private def fromOne(holder: Holder, wanted: Seq[WantedShard])(
      use: (Int, ShardTravel.Came, String) => Unit
  ): Unit = {
    var left = wanted
    while (left.nonEmpty) {
      val asked = left
      left = Nil
      val later = mutable.ArrayBuffer[WantedShard]()
      val id = UUID.randomUUID()
      val question = ShardQuestion.encode(ShardQuestion(id, stateRoot, store, asked))
      peers.ask(holder.addresses, question, ShardTravel.LimitMs) { (answer, by) =>
        ShardAnswer.read(id, new AnswerBytes(answer), asked.size)(ShardTravel.read) {
          case (i, _: AnsweredShard.Held, Some(Left(loaded))) => use(asked(i).shard, ShardTravel.Content(loaded), by)
          case (i, _: AnsweredShard.Changed, Some(Right(bytes))) =>
            use(asked(i).shard, ShardTravel.Changes(asked(i).have, bytes), by)
          case (i, AnsweredShard.Later, _) => later += asked(i)
          case _ => ()
        }
      } match {
        // One at least comes with each answer, or there is no end.
        case Outcome.Here(_) => if (later.size < asked.size) left = later.toSeq
        case Outcome.Refused(why) => ShardTravel.tell(s"${holder.executor} gives no shards: $why")
        case Outcome.Lost(why) => ShardTravel.tell(s"${holder.executor} could not be asked for shards: $why")
      }
    }
  }
}

/** An answer of another executor, as it comes. */
final private[penstock] class AnswerBytes(in: MessageIn) extends SectionBytes {
  private val all = in.remaining

  override def consumed: Int = all - in.remaining

  override def remaining: Int = in.remaining

  override def take(count: Int): Array[Byte] = {
    expect(count.toLong)
    in.take(count)
  }
}

object ShardTravel extends Logging {

  /** Shards that are asked for at once: a question has 512 KiB, and a shard up to 36 bytes of it. */
  private val AtOnce = 8192

  /** Who was given a shard has thrown. */
  final private class NotUsed(cause: Throwable) extends RuntimeException(cause)

  /** What came of a shard. */
  sealed trait Came

  /** All of it. */
  final case class Content(loaded: ShardSlot.Loaded) extends Came

  /**
   * What leads to it from what was here.
   *
   * @param base
   *   lineage of what was here when it was asked for
   */
  final case class Changes(base: UUID, bytes: Array[Byte]) extends Came

  private def read(part: AnsweredShard.Follows, in: SectionBytes): Either[ShardSlot.Loaded, Array[Byte]] = part match {
    case held: AnsweredShard.Held => Left(ShardSlot.Loaded(ShardImage.read(in), held.deltas, held.deltaBytes))
    case _: AnsweredShard.Changed => Right(in.takeAll())
  }

  /** In which an executor has to answer. */
  val LimitMs = 10000
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
