package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.sql.penstock.telemetry.RegionLoad

import io.penstock.control.{Attributing, HeavyKey, Homing, Measured, Pinning, Placing, Planner, RowTimes}
import io.penstock.routing.{ExecutorSet, MoveCost}
import io.penstock.telemetry.KeyShare

/**
 * Reasons of the plan for a region, as text; None for what was not planned.
 *
 * @param tasks
 *   Why the region has its number of tasks
 * @param placed
 *   Which policy and plan placed the shards on tasks
 * @param unpinned
 *   Why keys that could be pinned are not pinned
 * @param pins
 *   The planner's reason for the pinned keys, if it gives one
 * @param homes
 *   Why the shards are on their executors
 */
final case class PlanReasons(
    tasks: Option[String] = None,
    placed: Option[String] = None,
    unpinned: Option[String] = None,
    pins: Option[String] = None,
    homes: Option[String] = None
)

/**
 * The executors that a region's shards are divided among.
 *
 * @param inBatch
 *   Executors that the batch was planned for
 * @param waiting
 *   Number of planned moves of shards that are deferred to later batches
 * @param move
 *   Estimated cost to bring a shard to another executor
 * @param now
 *   Returns the current executors
 * @param owners
 *   Returns the executor that has each shard now, as a task location
 * @param executorOf
 *   Executor that each task is planned for; empty if Spark chooses the executors
 */
final private[routing] case class RegionExecutors(
    inBatch: ExecutorSet,
    waiting: Int,
    move: MoveCost,
    now: () => ExecutorSet,
    owners: () => Array[String],
    executorOf: IndexedSeq[String]
)

/**
 * A region in one batch, for which a plan is made.
 *
 * @param run
 *   Id of the query's run
 * @param region
 *   Id of the region
 * @param batch
 *   Id of the batch
 * @param tasks
 *   Number of tasks
 * @param batchesBefore
 *   Number of batches that the run completed before this one
 */
final private[routing] case class RegionBatch(run: UUID, region: Long, batch: Long, tasks: Int, batchesBefore: Int)

/**
 * Connects one region in one batch with the driver's planner: gives the plan that the batch uses, and sends what the
 * batch measured.
 *
 * @param choices
 *   Which decisions are planned
 * @param regionBatch
 *   The region and the batch
 * @param cores
 *   Number of tasks that can run at once
 * @param stateBytes
 *   Size of each shard's state
 * @param executors
 *   Executors that the shards are divided among
 */
final private[routing] class RegionPlanning(
    choices: PlanChoices,
    regionBatch: RegionBatch,
    cores: => Int,
    stateBytes: => Array[Long],
    executors: RegionExecutors
) {
  import choices.{learnsCosts, observes, pins, policy, theta}
  import regionBatch.{batch, tasks}

  private val plan = Planner.current.plan(regionBatch.run, regionBatch.region)

  /** Planned task of each shard; None if there is no plan for this number of tasks. */
  val taskOf: Option[Array[Int]] = plan.toOption.filter(_.tasks == tasks).flatMap(_.taskOf)

  /** Time of the rows of each shard, as far as the planner has estimated it from the times of tasks. */
  def rowTimes: Option[RowTimes] = plan.toOption.filter(_ => learnsCosts).flatMap(_.rowTimes)

  def reasons: PlanReasons =
    PlanReasons(
      Option.when(choices.tasks)(plan.fold(identity, _.reason)),
      policy.map(placed),
      pins.flatMap(_ => unpinned),
      pins.flatMap(_ => plan.toOption).flatMap(_.pinsReason),
      Option.when(executors.inBatch.size > 1)(homes)
    )

  private def homes: String = plan.map(p => p.homes.filter(_ => p.isFresh(batch))) match {
    case Left(why) => s"shards stay on their executors: $why"
    case Right(None) => "shards stay on their executors: there is no recent plan"
    case Right(Some(h)) =>
      val later =
        Option.when(executors.waiting > 0)(s"${executors.waiting} moves deferred: spark.penstock.move.maxBytesPerBatch")
      (Option.when(observes)("observe") ++ Some(h.reason) ++ later).mkString("; ")
  }

  private def unpinned: Option[String] = plan match {
    case Left(why) => Some(s"no key is pinned: $why")
    case Right(p) => p.pinned.filter(_.nonEmpty && observes).map(hashes => s"${hashes.size} keys would be pinned")
  }

  private def placed(policy: String): String = (plan, taskOf) match {
    case (Right(p), Some(_)) => s"$policy, by batch ${p.batch}"
    case (Right(p), None) => s"$policy has a plan for ${p.tasks} tasks, not for $tasks: shards stay if possible"
    case (Left(why), _) => s"$policy has no plan ($why): shards stay if possible"
  }

  /**
   * Sends what the batch measured to the planner, if a decision depends on it. The planner is a process that starts at
   * its first request, so requests without a purpose are avoided. The load of shards is the load by which they were
   * bound, because measurements of a single batch may be noise.
   *
   * @param decision
   *   Decision for the batch
   * @param load
   *   Measurements of the batch's tasks
   * @param byCost
   *   Whether shards were bound by trusted row costs; otherwise by numbers of rows
   */
  def learn(decision: Decision, load: RegionLoad, byCost: Boolean): Unit = {
    val attributing =
      Option.when(learnsCosts && isWarm && load.timesTellLittle && load.tasks.size == decision.binding.tasks)(
        Attributing(load.layout, decision.binding.taskOf)
      )
    val pinning =
      pins.filter(_ => pinsMatter(decision, load)).map(Pinning(
        theta,
        _,
        tasks,
        load.layout,
        RegionPlanning.heavy(load.heavyKeys(decision.rows.sum), decision.rows.sum, load.bookedNs, byCost),
        stateBytes
      ))
    val homing = Option.when(learnsCosts && load.workMs > RegionLoad.LittleMs)(executors.now()).filter(_.size > 1)
      .map(now =>
        Homing(
          math.max(theta, RegionPlanning.ExecutorTheta),
          now,
          now != executors.inBatch,
          now.locations.map(e => executors.executorOf.count(_ == e)),
          now.of(ownersOf(load)),
          executors.move,
          stateBytes
        )
      )
    if (choices.tasks || policy.nonEmpty || pinning.nonEmpty || attributing.nonEmpty || homing.nonEmpty)
      Planner.current.learn(measured(decision, load, pinning, attributing, homing))
  }

  private def ownersOf(load: RegionLoad): Array[String] =
    java.util.Arrays.copyOf(executors.owners(), load.layout.shards)

  private def isWarm = regionBatch.batchesBefore >= RegionPlanning.ColdBatches

  /**
   * Whether there are pinned keys that could return to their base shards, or a shard that may soon limit the balance.
   */
  private def pinsMatter(decision: Decision, load: RegionLoad): Boolean = load.layout.pinSlots.nonEmpty ||
    (isWarm && decision.heaviestShard * tasks > theta / 2 &&
      decision.heaviestShard * load.workMs > RegionLoad.LittleMs)

  private def measured(
      decision: Decision,
      load: RegionLoad,
      pinning: Option[Pinning],
      attributing: Option[Attributing],
      homing: Option[Homing]
  ): Measured =
    Measured(
      regionBatch.run,
      regionBatch.region,
      batch,
      decision.binding.tasks,
      cores,
      (System.nanoTime() - decision.atNs) / 1e6,
      load.tasks.map(_.workNs / 1e6),
      decision.rows,
      decision.load.map(l => math.round(load.bookedNs * (l / math.max(1.0, decision.load.sum.toDouble)))),
      choices.tasks,
      policy.map(Placing(_, theta, tasks, decision.proposed.taskOf, stateBytes)),
      pinning,
      attributing,
      homing
    )
}

private[routing] object RegionPlanning {

  /** Heavy keys, with lower bounds of their busy time. */
  private def heavy(keys: Seq[KeyShare], rows: Long, busyNs: Long, byCost: Boolean): Seq[HeavyKey] = keys.map { k =>
    val least = if (byCost) k.least else math.max(0.0, k.rowsShare - k.rowsError)
    HeavyKey(k.hash, math.round(k.rowsShare * rows), math.round(least * busyNs))
  }

  /**
   * Number of first batches of a run that lead to no new pins and row times: they reflect the JIT compiler more than
   * the load.
   */
  private val ColdBatches = 3

  /** Executors differ by this factor from batch to batch by chance alone, so no state is moved to even out less. */
  private val ExecutorTheta = 1.05
}
