package io.penstock.routing

import java.util.Locale

/**
 * How balanced a batch was, and what limits it.
 *
 * @param imbalanceBefore
 *   expected load of the busiest task over the mean, had the binding of the batch before stayed; None where there was none
 * @param expectedImbalance
 *   the same under the batch's own binding
 * @param tolerated
 *   busiest task over mean up to which nothing moves
 * @param moved
 *   shards that changed task
 * @param tasks
 *   N
 * @param heaviest
 *   shard with most of the load
 * @param heaviestShare
 *   its share of it
 * @param heaviestKey
 *   the key with most of the time, in words, and its share of it at least; None where none is known
 */
final case class BindingOutcome(
    imbalanceBefore: Option[Double],
    expectedImbalance: Double,
    tolerated: Double,
    moved: Int,
    tasks: Int,
    heaviest: Int,
    heaviestShare: Double,
    heaviestKey: Option[(String, Double)]
) {
  import BindingOutcome._

  /**
   * What was decided, and why, in words.
   *
   * @param theta
   *   busiest task over mean that is aimed at
   * @param heldFor
   *   batches, this one among them, of which the same was the limit
   * @param foreseen
   *   whether the load was known when shards were bound
   */
  def inWords(theta: Double, heldFor: Int, foreseen: Boolean = true): String = {
    val moves = (moved, imbalanceBefore) match {
      case (0, _) | (_, None) => ""
      case (n, Some(before)) => s"moved $n shards: ${ratio(before)} of the mean before, "
    }
    val reached = s"${ratio(expectedImbalance)} expected"
    if (expectedImbalance <= math.max(theta, tolerated) + Rounding) {
      if (moves.isEmpty) s"balanced: $reached" else moves + reached
    } else if (expectedImbalance <= Notable) {
      val best = if (foreseen) ", as balanced as these shards can be" else ""
      moves + reached + best
    } else {
      val why = limit.fold(Option.when(foreseen)("shards are too few and too heavy to be divided better")) { l =>
        Some(what(l) + (if (heldFor >= AdviceAfter) s", in each of the last $heldFor batches. ${advice(l)}" else ""))
      }
      (Seq(moves + reached) ++ why).mkString("; ")
    }
  }

  /** What keeps the batch from being balanced, if it is one shard, or one key of it. */
  def limit: Option[Limit] =
    Option.when(expectedImbalance > Notable && heaviestShare * tasks >= expectedImbalance * Nearly)(
      Limit(heaviest, heaviestKey.filter(_._2 >= heaviestShare * Most).map(_._1))
    )

  private def what(limit: Limit): String = {
    val fair = s"a task's fair share is ${percent(1.0 / tasks)}"
    limit.key match {
      case Some(key) => s"one key is the limit: $key has ${percent(keyShare)} of the time, $fair"
      case None => s"one shard is the limit: $heaviest has ${percent(heaviestShare)} of the load, $fair"
    }
  }

  /** What the user can do, which costs him something. */
  private def advice(limit: Limit): String = limit.key match {
    case Some(_) =>
      s"More than ${math.max(1, (1.0 / keyShare).toInt)} tasks do not help; split the key in the query, or make its rows cheaper"
    case None => "A new checkpoint with more shards would divide it"
  }

  private def keyShare = heaviestKey.fold(0.0)(_._2)

  private def ratio(d: Double): String = "%.2f".formatLocal(Locale.ROOT, d)
  private def percent(d: Double): String = "%.0f %%".formatLocal(Locale.ROOT, d * 100)
}

/**
 * What limits a batch.
 *
 * @param key
 *   in words, where one key has nearly all of the shard
 */
final case class Limit(shard: Int, key: Option[String])

/**
 * What has limited the newest batches.
 *
 * @param by
 *   the newest; None where nothing has
 * @param batches
 *   how many in a row
 */
final case class Limited(by: Option[Limit], batches: Int) {

  /** The same with one batch more. */
  def after(limit: Option[Limit]): Limited =
    if (limit.isEmpty) Limited.Never else Limited(limit, if (limit == by) batches + 1 else 1)
}

object Limited {
  val Never: Limited = Limited(None, 0)
}

object BindingOutcome {

  /** Batches in a row of which the same was the limit before anybody is told to do something about it. */
  val AdviceAfter = 10

  /** Loads are whole numbers: the best binding may be above theta by so much. */
  private val Rounding = 0.005

  /** Up to here, what limits a batch costs it so little that nobody has to do anything. */
  private val Notable = 1.05

  /** A shard limits a batch where its task has hardly anything else. */
  private val Nearly = 0.95

  /** A key limits its shard where it has so much of it. */
  private val Most = 0.8
}
