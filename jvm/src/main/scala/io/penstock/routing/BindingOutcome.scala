package io.penstock.routing

import java.util.Locale

/**
 * How balanced a batch is, and what limits its balance.
 *
 * @param imbalanceBefore
 *   expected imbalance if the binding of the previous batch had been kept; None if there is none
 * @param expectedImbalance
 *   expected imbalance under the batch's binding
 * @param tolerated
 *   imbalance up to which no shard is moved
 * @param moved
 *   number of shards that were bound to another task than before
 * @param tasks
 *   number of tasks
 * @param heaviest
 *   shard with the largest load
 * @param heaviestShare
 *   share of the heaviest shard in the total load
 * @param heaviestKey
 *   text of the key with the largest share of the time, and a lower bound for this share; None if no key is known
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
   * Text that says what was decided and why.
   *
   * @param theta
   *   largest imbalance that is accepted
   * @param heldFor
   *   number of batches in a row, including this one, that have had the same limit
   * @param foreseen
   *   whether the load was known when the shards were bound
   */
  def inWords(theta: Double, heldFor: Int, foreseen: Boolean = true): String = {
    val moves = (moved, imbalanceBefore) match {
      case (0, _) | (_, None) => ""
      case (n, Some(before)) => s"moved $n shards: imbalance ${ratio(before)} before, "
    }
    val reached = s"${ratio(expectedImbalance)} expected"
    if (expectedImbalance <= math.max(theta, tolerated) + Rounding) {
      if (moves.isEmpty) s"balanced: $reached" else moves + reached
    } else if (expectedImbalance <= Notable) {
      val best = if (foreseen) ", as balanced as these shards can be" else ""
      moves + reached + best
    } else {
      val why = limit.fold(Option.when(foreseen)("shards are too few and too heavy to be divided better")) { l =>
        val held = if (heldFor >= AdviceAfter) s", in each of the last $heldFor batches. ${advice(l)}" else ""
        Some(describe(l) + held)
      }
      (Seq(moves + reached) ++ why).mkString("; ")
    }
  }

  /** The shard or key that keeps the batch from being balanced; None if there is no single one. */
  def limit: Option[Limit] =
    Option.when(expectedImbalance > Notable && heaviestShare * tasks >= expectedImbalance * Nearly)(
      Limit(heaviest, heaviestKey.filter(_._2 >= heaviestShare * Most).map(_._1))
    )

  private def describe(limit: Limit): String = {
    val fair = s"a task's fair share is ${percent(1.0 / tasks)}"
    limit.key match {
      case Some(key) => s"one key is the limit: $key has ${percent(keyShare)} of the time, $fair"
      case None => s"one shard is the limit: $heaviest has ${percent(heaviestShare)} of the load, $fair"
    }
  }

  /** What the user can do about a limit. Each remedy requires a change to the query or a new checkpoint. */
  private def advice(limit: Limit): String = limit.key match {
    case Some(_) =>
      s"More than ${math.max(1, (1.0 / keyShare).toInt)} tasks do not help; split the key in the query, or make its " +
        "rows cheaper"
    case None => "A new checkpoint with more shards would divide it"
  }

  private def keyShare = heaviestKey.fold(0.0)(_._2)

  private def ratio(d: Double): String = "%.2f".formatLocal(Locale.ROOT, d)
  private def percent(d: Double): String = "%.0f %%".formatLocal(Locale.ROOT, d * 100)
}

/**
 * The shard or key that limits the balance of a batch.
 *
 * @param key
 *   text of the key, if one key has most of the shard's load
 */
final case class Limit(shard: Int, key: Option[String])

/**
 * The limit of the newest batches.
 *
 * @param by
 *   limit of the newest batch; None if it had none
 * @param batches
 *   number of batches in a row with this limit
 */
final case class Limited(by: Option[Limit], batches: Int) {

  /** The state after one more batch. */
  def after(limit: Option[Limit]): Limited =
    if (limit.isEmpty) Limited.Never else Limited(limit, if (limit == by) batches + 1 else 1)
}

object Limited {
  val Never: Limited = Limited(None, 0)
}

object BindingOutcome {

  /** Number of batches in a row with the same limit after which advice is given. */
  val AdviceAfter = 10

  /** Loads are rounded to integers, so the best binding may exceed theta by this much. */
  private val Rounding = 0.005

  /** Imbalance up to which a limit costs too little to be reported. */
  private val Notable = 1.05

  /** A shard limits a batch if it makes up at least this part of the busiest task's load. */
  private val Nearly = 0.95

  /** A key limits a batch if it has at least this part of its shard's load. */
  private val Most = 0.8
}
