package io.penstock.control

import java.util.UUID

/**
 * Measurements of a query's batch and limits, from which the planner computes the number of executors that keeps the
 * query's latency target.
 *
 * @param executors
 *   current number of executors
 * @param batchMs
 *   duration of the batch
 * @param intervalMs
 *   time from the start of the previous batch to the start of this batch
 * @param workMs
 *   total time of the batch's tasks, without the time that they waited for input
 * @param tasks
 *   number of tasks that the application can run at once
 * @param targetMs
 *   target mean latency of a row
 * @param cores
 *   number of tasks that one executor can run at once
 * @param least
 *   smallest number of executors that may be requested
 * @param most
 *   largest number of executors that may be requested
 */
final case class Demand(
    run: UUID,
    batch: Long,
    executors: Int,
    rows: Long,
    batchMs: Long,
    intervalMs: Long,
    workMs: Long,
    tasks: Int,
    targetMs: Int,
    cores: Int,
    least: Int,
    most: Int
)

/** Number of executors that a query needs, with the reason. */
final case class Scaled(executors: Int, reason: String)
