package org.apache.spark.sql.penstock.routing

import java.io.ObjectOutputStream

import org.apache.spark.sql.penstock.lease.RegionLease

import io.penstock.errors.PenstockException
import io.penstock.routing.Binding

/**
 * A region's binding on its way to the tasks, held by the RDDs that need it. It is decided as the scheduler serializes
 * them into the task binary of their stage, when all map stages are complete and their counts known; no task asks for
 * it. They may be serialized earlier as well, on other threads, by Spark's closure checks: nothing is decided there,
 * because the counts would be zero.
 */
final private[routing] class ShippedBinding(@transient private val routing: RegionRouting) extends Serializable {
  val lease: RegionLease = routing.lease
  private var binding: Binding = _

  private def writeObject(out: ObjectOutputStream): Unit = {
    if (binding == null && routing != null && ShippedBinding.onScheduler) binding = routing.barrier.decide().binding
    out.defaultWriteObject()
  }

  /**
   * The binding, in a task.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NO_BINDING where the scheduler did not ship one
   */
  def forTask(task: Int): Binding = {
    if (binding == null) {
      throw new PenstockException(
        "PENSTOCK_NO_BINDING",
        s"task $task of region ${lease.spec.region}, batch ${lease.batchId}, was started without a binding: " +
          "its stage was not submitted by Spark's scheduler. Run the batch through Spark's own scheduler."
      )
    }
    binding
  }
}

private[routing] object ShippedBinding {
  def onScheduler: Boolean = Thread.currentThread.getName.startsWith("dag-scheduler")
}
