package io.penstock.control

import java.util.UUID

/**
 * What the driver knows of a region when the last task of a batch has ended.
 *
 * @param tasks
 *   N
 * @param mostTasks
 *   that can run at once
 * @param stageMs
 *   from the binding of shards to the last task's end
 * @param tasksMs
 *   time of each task, waiting for input left out
 * @param rows
 *   of each shard
 * @param busyNs
 *   time that the rows of each shard took, as far as it was booked to shards
 * @param plansTasks
 *   whether N is to be planned
 * @param placing
 *   None where shards are bound at the barrier
 */
final case class Measured(
    run: UUID,
    region: Long,
    batch: Long,
    tasks: Int,
    mostTasks: Int,
    stageMs: Double,
    tasksMs: Seq[Double],
    rows: Array[Long],
    busyNs: Array[Long],
    plansTasks: Boolean = true,
    placing: Option[Placing] = None
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
 * What a region should do from the next batch on.
 *
 * @param batch
 *   newest batch that it knows of
 * @param reason
 *   why so many tasks
 * @param taskOf
 *   task of each shard, below `tasks`; None where shards are bound at the barrier
 */
final case class Plan(batch: Long, tasks: Int, reason: String, taskOf: Option[Array[Int]] = None)
