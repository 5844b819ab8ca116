package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.sidecars.transfer.{MessageIn, Outcome, PeerQuestions}
import io.penstock.state.engine.ShardImage
import io.penstock.state.format._

/**
 * Brings shards from the memory of other executors, through the transfer sidecars. A shard that does not arrive, for
 * whatever reason, is read from the checkpoint, which only costs time.
 */
final class ShardTravel(stateRoot: String, store: StoreKey, peers: PeerQuestions) extends Logging {

  /**
   * Asks for shards.
   *
   * @param wanted
   *   shards, each with the lineage that it must have
   * @param holdersOf
   *   executors that may hold a shard, in the order in which they are asked
   * @param use
   *   receives each shard that arrived, and the transport that brought it
   * @return
   *   shards that did not arrive
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
    val received = mutable.Set[Int]()
    val byHolder = wanted.flatMap(w => holderOf(w.shard).map(_ -> w)).groupMap(_._1)(_._2)
    byHolder.foreach { case (holder, shards) =>
      try
        shards.grouped(ShardTravel.AtOnce).foreach(fromOne(holder, _) { (shard, loaded, by) =>
          try use(shard, loaded, by)
          catch { case NonFatal(e) => throw new ShardTravel.NotUsed(e) }
          received += shard
        })
      catch {
        case e: ShardTravel.NotUsed => throw e.getCause
        case e: MalformedData => ShardTravel.warn(s"${holder.executor} sent a malformed answer: ${e.getMessage}")
        // An error that is not due to the transfer occurs again when the shards are read from the checkpoint.
        case NonFatal(e) => ShardTravel.warn(s"shards of ${holder.executor} could not be received: $e")
      }
    }
    wanted.map(_.shard).filterNot(received)
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
        // An answer without any shard ends the loop, which might not end otherwise.
        case Outcome.Here(_) => if (later.size < asked.size) left = later.toSeq
        case Outcome.Refused(why) => ShardTravel.warn(s"${holder.executor} refused to send shards: $why")
        case Outcome.Lost(why) => ShardTravel.warn(s"${holder.executor} could not be asked for shards: $why")
      }
    }
  }
}

/** The bytes of another executor's answer, read while they arrive. */
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

  /** Most shards in one question: a question has at most 512 KiB, and a shard takes up to 36 bytes of it. */
  private val AtOnce = 8192

  /** Wraps an error of the code that uses a received shard, to tell it from an error of the transfer. */
  final private class NotUsed(cause: Throwable) extends RuntimeException(cause)

  /** What arrived for a shard. */
  sealed trait Came

  /** The whole content. */
  final case class Content(loaded: ShardSlot.Loaded) extends Came

  /**
   * The delta that leads to the wanted content from the content that was here.
   *
   * @param base
   *   lineage of the content that was here when the shard was asked for
   */
  final case class Changes(base: UUID, bytes: Array[Byte]) extends Came

  private def read(part: AnsweredShard.Follows, in: SectionBytes): Either[ShardSlot.Loaded, Array[Byte]] = part match {
    case held: AnsweredShard.Held => Left(ShardSlot.Loaded(ShardImage.read(in), held.deltas, held.deltaBytes))
    case _: AnsweredShard.Changed => Right(in.takeAll())
  }

  /** Time within which an executor must answer. */
  val LimitMs = 10000
  private val WarnEveryNs = 60000000000L

  /** Not in the executor context: the limit on warnings concerns the log of the process, not the application. */
  private val warnedNs = new AtomicLong(System.nanoTime() - WarnEveryNs)

  /** Logs a warning at most once a minute: if an executor is gone, every task has the same problem. */
  private def warn(problem: String): Unit = {
    val (before, now) = (warnedNs.get, System.nanoTime())
    if (now - before >= WarnEveryNs && warnedNs.compareAndSet(before, now)) {
      logWarning(s"Penstock: $problem. The shards are read from the checkpoint instead")
    }
  }
}
