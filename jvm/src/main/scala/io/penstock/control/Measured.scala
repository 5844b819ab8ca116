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
    busyNs: Array[Long]
)

/**
 * What a region should do from the next batch on.
 *
 * @param batch
 *   newest batch that it knows of
 * @param reason
 *   why so many tasks
 */
final case class Plan(batch: Long, tasks: Int, reason: String)
