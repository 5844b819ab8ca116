package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.sql.penstock.telemetry.RegionLoad

import io.penstock.conf.{PolicyChoice, QuerySettings, TasksChoice}
import io.penstock.control.{Measured, Placing, Planner}

/** Why a region has its tasks, and what placed its shards on them, in words; None where that was not planned. */
final case class PlanReasons(tasks: Option[String] = None, placed: Option[String] = None)

/**
 * What the driver's planner has to do with one region in one batch: the plan that the batch uses, and what it is told of
 * the batch afterwards.
 *
 * @param tasks
 *   N of the batch
 * @param cores
 *   tasks that can run at once
 * @param stateBytes
 *   of each shard
 */
final private[routing] class RegionPlanning private (
    run: UUID,
    region: Long,
    batch: Long,
    tasks: Int,
    theta: Double,
    plansTasks: Boolean,
    policy: Option[String],
    cores: => Int,
    stateBytes: => Array[Long]
) {
  private val plan = Planner.current.plan(run, region)

  /** Task of each shard, as planned for this number of tasks. */
  val taskOf: Option[Array[Int]] = plan.toOption.filter(_.tasks == tasks).flatMap(_.taskOf)

  def reasons: PlanReasons = PlanReasons(Option.when(plansTasks)(plan.fold(identity, _.reason)), policy.map(placed))

  private def placed(policy: String): String = (plan, taskOf) match {
    case (Right(p), Some(_)) => s"$policy, by batch ${p.batch}"
    case (Right(p), None) => s"$policy has planned for ${p.tasks} tasks, not for $tasks: shards stay where they can"
    case (Left(why), _) => s"$policy has no plan ($why): shards stay where they can"
  }

  /** Hands over what the batch has measured. */
  def learn(decision: Decision, load: RegionLoad): Unit = Planner.current.learn(
    Measured(
      run,
      region,
      batch,
      decision.binding.tasks,
      cores,
      (System.nanoTime() - decision.atNs) / 1e6,
      load.tasks.map(_.workNs / 1e6),
      decision.rows,
      load.busyOfShardsNs,
      plansTasks,
      policy.map(Placing(_, theta, tasks, decision.proposed.taskOf, stateBytes))
    )
  )
}

private[routing] object RegionPlanning {

  /** None where a batch of these settings uses no plan. */
  def of(
      settings: QuerySettings,
      run: UUID,
      region: Long,
      batch: Long,
      tasks: Int,
      cores: => Int,
      stateBytes: => Array[Long]
  ): Option[RegionPlanning] = {
    val plansTasks = settings.tasks == TasksChoice.Auto
    val policy = Option(settings.policy).collect { case PolicyChoice.Planned(name) => name }
    Option.when(plansTasks || policy.nonEmpty)(
      new RegionPlanning(run, region, batch, tasks, settings.theta, plansTasks, policy, cores, stateBytes)
    )
  }
}
