package io.penstock.routing

import java.util.Locale

/**
 * How balanced a batch was, and what limits it.
 *
 * @param beforeOverMean
 *   expected load of the busiest task over the mean, had the binding of the batch before stayed; None where there was none
 * @param expectedOverMean
 *   the same under the batch's own binding
 * @param moved
 *   shards that changed task
 * @param tasks
 *   N
 * @param heaviestShard
 *   share of the load that the heaviest shard has
 * @param heaviestKey
 *   the key with most of the time, in words, and its share of it; None where none was measured
 */
final case class BindingOutcome(
    beforeOverMean: Option[Double],
    expectedOverMean: Double,
    moved: Int,
    tasks: Int,
    heaviestShard: Double,
    heaviestKey: Option[(String, Double)]
) {

  /**
   * What was decided, and why, in words.
   *
   * @param theta
   *   busiest task over mean that is aimed at
   * @param foreseen
   *   whether the load was known when shards were bound
   */
  def inWords(theta: Double, foreseen: Boolean = true): String = {
    val moves = (moved, beforeOverMean) match {
      case (0, _) | (_, None) => ""
      case (n, Some(before)) => s"moved $n shards: ${ratio(before)} of the mean before, "
    }
    val reached = s"${ratio(expectedOverMean)} expected"
    if (expectedOverMean <= theta + BindingOutcome.Rounding) {
      if (moves.isEmpty) s"balanced: $reached" else moves + reached
    } else if (expectedOverMean <= BindingOutcome.Notable) {
      val best = if (foreseen) ", as balanced as these shards can be" else ""
      moves + reached + best
    } else (Seq(moves + reached) ++ limit(foreseen)).mkString("; ")
  }

  /** What keeps a batch from being balanced. */
  private def limit(foreseen: Boolean): Option[String] = {
    val fair = 1.0 / tasks
    val shardIsLimit = heaviestShard * tasks >= expectedOverMean * BindingOutcome.Nearly
    heaviestKey match {
      case Some((key, share)) if shardIsLimit && share >= heaviestShard * BindingOutcome.Most =>
        Some(
          s"one key is the limit: $key has ${percent(share)} of the time, a task's fair share is ${percent(fair)}. More than " +
            s"${math.max(1, (1.0 / share).toInt)} tasks do not help; split the key in the query, or make its rows cheaper"
        )
      case _ if shardIsLimit =>
        Some(
          s"one shard is the limit: it has ${percent(heaviestShard)} of the load, a task's fair share is ${percent(fair)}. A new " +
            "checkpoint with more shards would divide it"
        )
      case _ => Option.when(foreseen)("shards are too few and too heavy to be divided better")
    }
  }

  private def ratio(d: Double): String = "%.2f".formatLocal(Locale.ROOT, d)
  private def percent(d: Double): String = "%.0f %%".formatLocal(Locale.ROOT, d * 100)
}

object BindingOutcome {

  /** Loads are whole numbers: the best binding may be above theta by so much. */
  private val Rounding = 0.005

  /** Up to here, what limits a batch costs it so little that nobody has to do anything. */
  private val Notable = 1.05

  /** A shard limits a batch where its task has hardly anything else. */
  private val Nearly = 0.95

  /** A key limits its shard where it has so much of it. */
  private val Most = 0.8
}
