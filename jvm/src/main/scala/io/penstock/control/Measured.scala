package io.penstock.control

import java.util.UUID

import io.penstock.routing.{ExecutorSet, Homes, MoveCost}
import io.penstock.sharding.Layout

/**
 * What the driver knows of a region when the last task of a batch has ended.
 *
 * @param tasks
 *   N
 * @param maxTasks
 *   that can run at once
 * @param stageMs
 *   from the binding of shards to the last task's end
 * @param tasksMs
 *   time of each task, in their order, without waiting and without what kept it from running
 * @param rows
 *   of each shard
 * @param busyNs
 *   part of the time that was booked to rows, by the load that each shard was bound by
 * @param plansTasks
 *   whether N is to be planned
 * @param placing
 *   None where shards are bound at the barrier
 * @param pinning
 *   None where pinned keys are not planned
 * @param attributing
 *   None where tasks could time their rows
 * @param homing
 *   None where shards cannot go from one executor to another
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
 * What a policy that places shards between batches needs besides.
 *
 * @param policy
 *   its name
 * @param theta
 *   busiest task over mean that is accepted
 * @param tasks
 *   N of `taskOf`
 * @param taskOf
 *   task of each shard, as proposed
 * @param stateBytes
 *   size of each shard's state, 0 where it is not known
 */
final case class Placing(policy: String, theta: Double, tasks: Int, taskOf: Array[Int], stateBytes: Array[Long])

/**
 * What planning of pinned keys needs besides.
 *
 * @param theta
 *   busiest task over mean that is accepted
 * @param most
 *   hashes that may be pinned
 * @param tasks
 *   N as it was proposed
 * @param layout
 *   of the batch
 * @param heavy
 *   keys that had much of the time or of the rows
 * @param stateBytes
 *   size of each shard's state, 0 where it is not known
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
 * What finding out of costs from the times of whole tasks needs besides.
 *
 * @param layout
 *   of the batch
 * @param ranOn
 *   task of each shard
 */
final case class Attributing(layout: Layout, ranOn: Array[Int])

/**
 * What planning of shards between executors needs besides.
 *
 * @param theta
 *   busiest executor over mean that is accepted
 * @param executors
 *   when the batch had ended
 * @param changed
 *   whether the batch had others: then no balance can be waited for
 * @param tasks
 *   that it had on each executor, all 0 where they were not divided among them
 * @param home
 *   executor of each shard, [[io.penstock.routing.ExecutorSet.Unknown]] where it has none
 * @param moveCost
 *   what a move takes
 * @param stateBytes
 *   size of each shard's state, 0 where it is not known
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
 * A key, by its hash, that had much of a batch.
 *
 * @param busyNs
 *   time of its rows at least, as far as it was booked to keys
 */
final case class HeavyKey(hash: Int, rows: Long, busyNs: Long)

/**
 * What a region should do from the next batch on.
 *
 * @param batch
 *   newest batch that it knows of
 * @param reason
 *   why so many tasks
 * @param taskOf
 *   task of each shard, below `tasks`; None where shards are bound at the barrier
 * @param pinned
 *   hashes that are to have a shard of their own; None where that was not planned
 * @param pinsReason
 *   why no others; None where there is nothing to say
 * @param rowTimes
 *   what rows take; None where times of tasks do not tell, or need not
 * @param homes
 *   None where shards cannot go from one executor to another
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
   * Whether it knows a batch so shortly before this one that shards may go where it has them: what moved them since knew
   * more than an older one.
   */
  def isFresh(forBatch: Long): Boolean = batch >= forBatch - Plan.FreshBatches
}

object Plan {

  /** A plan may be a batch late. */
  private val FreshBatches = 2
}

/**
 * What a row of each shard takes.
 *
 * @param layout
 *   that the shards are of
 */
final case class RowTimes(layout: Layout, ns: Array[Long]) {

  /**
   * What rows of the shards of a layout cost, relative to the typical row: that of the shard in the middle. Shards that the
   * layout has anew cost what their keys have cost where they were.
   */
  def relative(in: Layout): Array[Double] = {
    val typical = math.max(1.0, ns.sorted.apply(ns.length / 2).toDouble)
    in.inherited(layout).map(s => math.max(RowTimes.Least, ns(s) / typical))
  }
}

object RowTimes {

  /** No row is for nothing. */
  private val Least = 0.01
}
