package io.penstock.telemetry

import java.util.UUID

import org.apache.spark.scheduler.SparkListenerEvent

import io.penstock.state.format.StoreKey

/**
 * Posted on Spark's listener bus when the tasks of a region that was bound at the barrier have ended. Every
 * `SparkListener` receives it in `onOtherEvent`. It is not written to event logs. The arrays are shared, so listeners
 * must not change them.
 *
 * @param region
 *   Id of the region, which is that of its first stateful operator
 * @param tasks
 *   Number of tasks of the region
 * @param taskOf
 *   Task of each shard
 * @param rows
 *   Rows of each shard, over all inputs
 * @param busyNs
 *   Time of each shard's rows, estimated from the rows that were timed
 * @param tasksBusyNs
 *   Time of each task, without waiting for input
 * @param tasksWaitNs
 *   Time for which each task waited for input of other tasks
 * @param operators
 *   For each operator of the region: input rows of each shard and the time that the operator spent on them
 * @param stores
 *   For each store of the region's operators: size of each shard before the changes of the batch, and operations in the
 *   batch
 */
final case class ShardsMeasured(
    runId: UUID,
    region: Long,
    batchId: Long,
    tasks: Int,
    taskOf: Array[Int],
    rows: Array[Long],
    busyNs: Array[Long],
    tasksBusyNs: Array[Long],
    tasksWaitNs: Array[Long],
    operators: Map[Long, OperatorLoad],
    stores: Map[StoreKey, StateLoad]
) extends SparkListenerEvent {

  /** State of each shard, summed over all stores. */
  def state: StateLoad = StateLoad.sum(stores.values).of(rows.length)

  override def logEvent: Boolean = false
}
