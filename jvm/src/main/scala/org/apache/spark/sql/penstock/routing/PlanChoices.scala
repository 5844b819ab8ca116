package org.apache.spark.sql.penstock.routing

import io.penstock.conf.{Mode, QuerySettings}

/**
 * Which decisions about a region are planned.
 *
 * @param theta
 *   Largest accepted imbalance
 * @param tasks
 *   Whether the number of tasks is planned
 * @param policy
 *   Policy that places shards between batches; None if shards are not placed between batches
 * @param learnsCosts
 *   Whether the costs of rows, pins and moves are learnt
 * @param pins
 *   Maximum number of pinned keys; None if pins are not planned
 * @param observes
 *   Whether the query only observes, so that no key is pinned
 */
final private[routing] case class PlanChoices(
    theta: Double,
    tasks: Boolean,
    policy: Option[String],
    learnsCosts: Boolean,
    pins: Option[Int],
    observes: Boolean
)

private[routing] object PlanChoices {

  /** The choices that settings make; None if a batch with these settings uses no plan. */
  def of(settings: QuerySettings): Option[PlanChoices] = {
    val learnsCosts = settings.policy.learnsCosts
    val choices = PlanChoices(
      settings.theta,
      settings.tasks.isPlanned,
      settings.policy.plannedBy,
      learnsCosts,
      Option.when(learnsCosts && settings.pinnedMax > 0)(settings.pinnedMax),
      settings.mode == Mode.Observe
    )
    Option.when(choices.tasks || choices.policy.nonEmpty || choices.learnsCosts)(choices)
  }
}
