package io.penstock.control

import java.util.UUID

import io.penstock.routing.{ExecutorSet, Homes, MoveCost}
import io.penstock.sharding.Layout

/**
 * Measurements of a region, complete when the last task of a batch has ended.
 *
 * @param tasks
 *   number of tasks of the region, N
 * @param maxTasks
 *   number of tasks that can run at once
 * @param stageMs
 *   time from the binding of shards to the end of the last task
 * @param tasksMs
 *   running time of each task by task number, without time spent waiting or prevented from running
 * @param rows
 *   number of rows of each shard
 * @param busyNs
 *   time attributed to rows, divided among the shards in proportion to the load that they were bound with
 * @param plansTasks
 *   whether the planner chooses the number of tasks
 * @param placing
 *   inputs for placing shards on tasks; None if shards are bound at the barrier
 * @param pinning
 *   inputs for planning pinned keys; None if pinned keys are not planned
 * @param attributing
 *   inputs for estimating the cost of rows from the times of tasks; None if tasks measured their rows themselves
 * @param homing
 *   inputs for placing shards on executors; None if shards cannot move between executors
 */
final case class Measured(
    run: UUID,
    region: Long,
    batch: Long,
    tasks: Int,
    maxTasks: Int,
    stageMs: Double,
    tasksMs: Seq[Double],
    rows: Array[Long],
    busyNs: Array[Long],
    plansTasks: Boolean = true,
    placing: Option[Placing] = None,
    pinning: Option[Pinning] = None,
    attributing: Option[Attributing] = None,
    homing: Option[Homing] = None
)

/**
 * Additional inputs of a policy that places shards on tasks between batches.
 *
 * @param policy
 *   name of the policy
 * @param theta
 *   largest imbalance that is accepted
 * @param tasks
 *   number of tasks for `taskOf`
 * @param taskOf
 *   proposed task of each shard
 * @param stateBytes
 *   size of each shard's state, 0 if it is not known
 */
final case class Placing(policy: String, theta: Double, tasks: Int, taskOf: Array[Int], stateBytes: Array[Long])

/**
 * Additional inputs for planning pinned keys.
 *
 * @param theta
 *   largest imbalance that is accepted
 * @param most
 *   largest number of hashes that may be pinned
 * @param tasks
 *   proposed number of tasks
 * @param layout
 *   layout of the batch
 * @param heavy
 *   keys with a large share of the time or of the rows
 * @param stateBytes
 *   size of each shard's state, 0 if it is not known
 */
final case class Pinning(
    theta: Double,
    most: Int,
    tasks: Int,
    layout: Layout,
    heavy: Seq[HeavyKey],
    stateBytes: Array[Long]
)

/**
 * Additional inputs for estimating the cost of rows from the times of tasks.
 *
 * @param layout
 *   layout of the batch
 * @param ranOn
 *   task that ran each shard
 */
final case class Attributing(layout: Layout, ranOn: Array[Int])

/**
 * Additional inputs for placing shards on executors.
 *
 * @param theta
 *   largest imbalance between executors that is accepted
 * @param executors
 *   executors at the end of the batch
 * @param changed
 *   whether the batch ran on other executors; the planner then does not wait until an imbalance persists
 * @param tasks
 *   number of the batch's tasks on each executor; all 0 if tasks were not divided among executors
 * @param home
 *   home executor of each shard, [[io.penstock.routing.ExecutorSet.Unknown]] if it has none
 * @param moveCost
 *   cost of moving a shard between executors
 * @param stateBytes
 *   size of each shard's state, 0 if it is not known
 */
final case class Homing(
    theta: Double,
    executors: ExecutorSet,
    changed: Boolean,
    tasks: Seq[Int],
    home: Array[Int],
    moveCost: MoveCost,
    stateBytes: Array[Long]
)

/**
 * A heavy key of a batch, identified by its hash.
 *
 * @param busyNs
 *   lower bound for the time of its rows, because only a part of the time is attributed to keys
 */
final case class HeavyKey(hash: Int, rows: Long, busyNs: Long)

/**
 * Plan for a region, to be used from the next batch on.
 *
 * @param batch
 *   newest batch whose measurements the plan is based on
 * @param reason
 *   reason for the number of tasks
 * @param taskOf
 *   task of each shard, less than `tasks`; None if shards are bound at the barrier
 * @param pinned
 *   hashes to be pinned; None if pinned keys are not planned
 * @param pinsReason
 *   reason why no other keys are pinned; None if there is none to report
 * @param rowTimes
 *   time per row of each shard; None if it could not be estimated from the times of tasks, or need not be
 * @param homes
 *   moves of shards between executors; None if shards cannot move between executors
 */
final case class Plan(
    batch: Long,
    tasks: Int,
    reason: String,
    taskOf: Option[Array[Int]] = None,
    pinned: Option[Set[Int]] = None,
    pinsReason: Option[String] = None,
    rowTimes: Option[RowTimes] = None,
    homes: Option[Homes] = None
) {

  /**
   * Whether the plan is recent enough to place the shards of this batch. Bindings made after an older plan are based on
   * newer measurements and are better than that plan.
   */
  def isFresh(forBatch: Long): Boolean = batch >= forBatch - Plan.FreshBatches
}

object Plan {

  /** A plan for a batch may be one batch late, so that it is based on the batch before the previous one. */
  private val FreshBatches = 2
}

/**
 * Time per row of each shard.
 *
 * @param layout
 *   layout to which the shards belong
 * @param ns
 *   mean time of a row of each shard
 */
final case class RowTimes(layout: Layout, ns: Array[Long]) {

  /**
   * Cost of a row of each shard of a layout, relative to the typical row, which is the median over shards. A shard that
   * is new in the layout has the cost of the shard from which its keys come.
   */
  def relative(in: Layout): Array[Double] = {
    val typical = math.max(1.0, ns.sorted.apply(ns.length / 2).toDouble)
    in.inherited(layout).map(s => math.max(RowTimes.Least, ns(s) / typical))
  }
}

object RowTimes {

  /** Lower bound for the relative cost of a row: no row is free. */
  private val Least = 0.01
}
