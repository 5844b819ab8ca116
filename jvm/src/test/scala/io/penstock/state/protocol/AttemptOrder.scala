package io.penstock.state.protocol

import io.penstock.state.protocol.Driver.Running
import io.penstock.state.protocol.Mutation._

/** How a driver decides which attempt counts for a shard: in Spark's own order. */
object AttemptOrder {
  sealed trait Verdict

  /** The attempt counts, and one that counted before does not any more. */
  case object Counts extends Verdict

  /** It is answered, and changes nothing. */
  case object Passed extends Verdict

  /** It fails, which Spark does not count as a failure. */
  case object Refused extends Verdict

  /** It waits until Spark knows how the attempt ended that counts so far. */
  case object Waits extends Verdict

  /**
   * @param a
   *   an attempt that tells
   * @param shard
   *   one that it tells of
   */
  def verdict(d: Running, a: Attempt, shard: Int, mutation: Option[Mutation]): Verdict =
    d.further.get(shard).orElse(d.told.get(shard)) match {
      case Some(other) if a.batch == d.batch && !mutation.contains(LastCommitWins) =>
        val order = Ordering[(Int, Int)].compare((a.stage, a.stageAttempt), (other.stage, other.stageAttempt))
        if (order > 0) Counts
        else if (a.stage < other.stage) Passed
        else if (order < 0) Refused
        else if (d.stages(other.stage).counts(other)) Refused
        else if (d.alive(other)) if (mutation.contains(AnswerCopies)) Passed else Waits
        else if (mutation.contains(KeepFailed)) Passed
        else Counts
      case _ => Counts
    }
}
