package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.sql.penstock.telemetry.RegionLoad

import io.penstock.control.{Attributing, HeavyKey, Homing, Measured, Pinning, Placing, Planner, RowTimes}
import io.penstock.routing.{ExecutorSet, MoveCost}
import io.penstock.telemetry.KeyShare

/**
 * What was planned of a region, in words; None where it was not planned.
 *
 * @param tasks
 *   why it has so many
 * @param placed
 *   what placed its shards on them
 * @param unpinned
 *   why keys that could be pinned are not
 * @param pins
 *   why the keys that are pinned are these, where the planner has something to say
 * @param homes
 *   why shards are on these executors
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
 *   those that the batch was planned for
 * @param waiting
 *   shards that are to go to another by plan, and wait for later batches
 * @param move
 *   what it takes to bring a shard from one to another
 * @param now
 *   those that there are
 * @param owners
 *   that has each shard now, as a task location
 * @param executorOf
 *   that each task is meant for; empty where that is left open
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
 * A region in one batch, as it is planned for.
 *
 * @param tasks
 *   N
 * @param seen
 *   batches of the run before this one
 */
final private[routing] case class RegionBatch(run: UUID, region: Long, batch: Long, tasks: Int, seen: Int)

/**
 * What the driver's planner has to do with one region in one batch: the plan that the batch uses, and what it is told of
 * the batch afterwards.
 *
 * @param cores
 *   tasks that can run at once
 * @param stateBytes
 *   of each shard
 * @param executors
 *   that shards are divided among
 */
final private[routing] class RegionPlanning(
    choices: PlanChoices,
    in: RegionBatch,
    cores: => Int,
    stateBytes: => Array[Long],
    executors: RegionExecutors
) {
  import choices.{hybrid, observes, pins, policy, theta}
  import in.{batch, tasks}

  private val plan = Planner.current.plan(in.run, in.region)

  /** Task of each shard, as planned for this number of tasks. */
  val taskOf: Option[Array[Int]] = plan.toOption.filter(_.tasks == tasks).flatMap(_.taskOf)

  /** What rows take, as far as it was found out from the times of tasks. */
  def rowTimes: Option[RowTimes] = plan.toOption.filter(_ => hybrid).flatMap(_.rowTimes)

  def reasons: PlanReasons =
    PlanReasons(
      Option.when(choices.tasks)(plan.fold(identity, _.reason)),
      policy.map(placed),
      pins.flatMap(_ => unpinned),
      pins.flatMap(_ => plan.toOption).flatMap(_.pinsReason),
      Option.when(executors.inBatch.size > 1)(homes)
    )

  private def homes: String = plan.map(p => p.homes.filter(_ => p.isFresh(batch))) match {
    case Left(why) => s"shards stay where they are: $why"
    case Right(None) => "shards stay where they are: nothing was planned of late"
    case Right(Some(h)) =>
      val later =
        Option.when(executors.waiting > 0)(s"${executors.waiting} shards wait: spark.penstock.move.maxBytesPerBatch")
      (Option.when(observes)("observe") ++ Some(h.reason) ++ later).mkString("; ")
  }

  private def unpinned: Option[String] = plan match {
    case Left(why) => Some(s"no key is pinned: $why")
    case Right(p) => p.pinned.filter(_.nonEmpty && observes).map(hashes => s"${hashes.size} keys would be pinned")
  }

  private def placed(policy: String): String = (plan, taskOf) match {
    case (Right(p), Some(_)) => s"$policy, by batch ${p.batch}"
    case (Right(p), None) => s"$policy has planned for ${p.tasks} tasks, not for $tasks: shards stay where they can"
    case (Left(why), _) => s"$policy has no plan ($why): shards stay where they can"
  }

  /**
   * Hands over what the batch has measured, where something may come of it: the planner is a process, which starts when it
   * is first asked. Shards have the load by which they were bound: what the batch alone has measured may be chance.
   *
   * @param byCost
   *   whether that was by what rows cost, which was found to foretell; else by rows
   */
  def learn(decision: Decision, load: RegionLoad, byCost: Boolean): Unit = {
    val attributing =
      Option.when(hybrid && isWarm && load.timesTellLittle && load.tasks.size == decision.binding.tasks)(
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
    val homing = Option.when(hybrid && load.workMs > RegionLoad.LittleMs)(executors.now()).filter(_.size > 1)
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

  private def isWarm = in.seen >= RegionPlanning.ColdBatches

  /** Whether keys are pinned that could return to their base shards, or a shard is heavy enough to become the limit soon. */
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
      in.run,
      in.region,
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

  /** What heavy keys have at least. */
  private def heavy(keys: Seq[KeyShare], rows: Long, busyNs: Long, byCost: Boolean): Seq[HeavyKey] = keys.map { k =>
    val least = if (byCost) k.least else math.max(0.0, k.rowsShare - k.rowsError)
    HeavyKey(k.hash, math.round(k.rowsShare * rows), math.round(least * busyNs))
  }

  /** The first batches of a run tell more of the compiler than of the load. */
  private val ColdBatches = 3

  /** Executors differ by as much from batch to batch without reason: state is not sent after that. */
  private val ExecutorTheta = 1.05
}
