package org.apache.spark.sql.penstock.routing

import io.penstock.conf.{Mode, PolicyChoice, QuerySettings, TasksChoice}

/**
 * What of a region is planned.
 *
 * @param tasks
 *   whether N is
 * @param policy
 *   that places shards between batches, if one does
 * @param hybrid
 *   whether shards are bound at the barrier, by learnt costs
 * @param pins
 *   how many keys may be pinned, if that is planned
 * @param observes
 *   whether none is, whatever is planned
 */
final private[routing] case class PlanChoices(
    theta: Double,
    tasks: Boolean,
    policy: Option[String],
    hybrid: Boolean,
    pins: Option[Int],
    observes: Boolean
)

private[routing] object PlanChoices {

  /** None where a batch of these settings uses no plan. */
  def of(settings: QuerySettings): Option[PlanChoices] = {
    val hybrid = settings.policy == PolicyChoice.Hybrid
    val choices = PlanChoices(
      settings.theta,
      settings.tasks == TasksChoice.Auto,
      Option(settings.policy).collect { case PolicyChoice.Planned(name) => name },
      hybrid,
      Option.when(hybrid && settings.pinnedMax > 0)(settings.pinnedMax),
      settings.mode == Mode.Observe
    )
    Option.when(choices.tasks || choices.policy.nonEmpty || choices.hybrid)(choices)
  }
}
