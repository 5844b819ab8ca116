package io.penstock.control

import java.util.UUID

/**
 * What a query's batch took, and how many executors may be asked for so that its rows are answered in time.
 *
 * @param executors
 *   that there are
 * @param batchMs
 *   what the batch took
 * @param intervalMs
 *   from the start of the batch before to its own
 * @param workMs
 *   time of its tasks, over all of them, waiting for input left out
 * @param tasks
 *   that can run at once
 * @param targetMs
 *   mean latency of a row that is wanted
 * @param cores
 *   tasks that an executor can run at once
 * @param least
 *   executors that there are to be
 * @param most
 *   executors that there may be
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

/** How many executors a query needs, and why. */
final case class Scaled(executors: Int, reason: String)
