package org.apache.spark.sql.penstock.routing

import java.io.ObjectOutputStream

import org.apache.spark.sql.penstock.lease.RegionLease

import io.penstock.errors.PenstockException
import io.penstock.routing.Binding

/**
 * Carries a region's binding to the tasks, as a field of the RDDs that need it. The binding is decided when the
 * scheduler serializes these RDDs into the task binary of their stage: then all map stages are complete and their
 * counts are known, and tasks need not request the binding. Spark's closure checks may serialize the RDDs earlier, on
 * other threads. Nothing is decided then, because the counts would be zero.
 */
final private[routing] class ShippedBinding(@transient private val routing: RegionRouting) extends Serializable {
  val lease: RegionLease = routing.lease
  private var binding: Binding = _

  private def writeObject(out: ObjectOutputStream): Unit = {
    if (binding == null && routing != null && ShippedBinding.onScheduler) binding = routing.barrier.decide().binding
    out.defaultWriteObject()
  }

  /**
   * Returns the binding in a task.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NO_BINDING if the scheduler did not ship a binding
   */
  def forTask(task: Int): Binding = {
    if (binding == null) {
      throw new PenstockException(
        "PENSTOCK_NO_BINDING",
        s"task $task of region ${lease.spec.region}, batch ${lease.batchId}, was started without a binding, " +
          "because its stage was not submitted by Spark's scheduler. Run the batch with Spark's own scheduler."
      )
    }
    binding
  }
}

private[routing] object ShippedBinding {
  def onScheduler: Boolean = Thread.currentThread.getName.startsWith("dag-scheduler")
}
