package io.penstock.telemetry

import java.util.UUID

import org.apache.spark.scheduler.SparkListenerEvent

import io.penstock.state.format.StoreKey

/**
 * Posted on Spark's listener bus when the tasks of a region have ended that a batch bound at the barrier: any
 * `SparkListener` gets it in `onOtherEvent`. Event logs leave it out. The arrays are shared: listeners must not change them.
 *
 * @param region
 *   id of its first stateful operator
 * @param tasks
 *   N
 * @param taskOf
 *   task of each shard
 * @param rows
 *   of each shard, over all inputs
 * @param busyNs
 *   time of each shard's rows, estimated from those that were timed
 * @param tasksBusyNs
 *   time of each task, waiting for input left out
 * @param tasksWaitNs
 *   time in which each task waited for input of others
 * @param operators
 *   of each of the region's operators and of each shard: rows that came into it, and the time of these that it took
 * @param stores
 *   of each store of the region's operators and of each shard: size before the changes of the batch, and operations in it
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

  /** Of each shard, over all stores. */
  def state: StateLoad = StateLoad.sum(stores.values).of(rows.length)

  override def logEvent: Boolean = false
}
