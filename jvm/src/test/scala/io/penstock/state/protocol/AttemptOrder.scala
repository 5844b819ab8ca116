package io.penstock.state.protocol

import io.penstock.state.protocol.Driver.Running
import io.penstock.state.protocol.Mutation._

/** Decides which attempt counts for a shard, as the driver does: in the order in which Spark counts attempts. */
object AttemptOrder {
  sealed trait Verdict

  /** The attempt counts, and replaces an attempt that counted before. */
  case object Counts extends Verdict

  /** The attempt gets an answer but changes nothing. */
  case object Passed extends Verdict

  /** The attempt fails. Spark does not count this as a failure of the task. */
  case object Refused extends Verdict

  /** The attempt waits until Spark knows how the attempt that counts so far has ended. */
  case object Waits extends Verdict

  /**
   * @param a
   *   Attempt that reports its changes
   * @param shard
   *   One of the shards that the attempt reports
   */
  def verdict(d: Running, a: Attempt, shard: Int, mutation: Option[Mutation]): Verdict =
    d.further.get(shard).orElse(d.reported.get(shard)) match {
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
