package org.apache.spark.sql.penstock.lease

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.TaskContext

import io.penstock.context.Component

/**
 * The leases of the tasks that run in this JVM. A routed read installs the lease before it returns its first row, and
 * therefore before any operator above it opens a store. A store finds its lease by task attempt and operator.
 *
 * An object, because an entry belongs to its task, which removes it at its end. The executor context owns it, and
 * removes what tasks have left that outlive the application.
 */
object TaskLeases extends Component {

  /** A region's lease with the shards that this task was bound to, ascending. */
  final class TaskLease(val region: RegionLease, val shards: Array[Int])

  /**
   * Keyed by context, because attempt ids are unique only within an application, and a JVM may run two applications.
   */
  private val leases = new ConcurrentHashMap[(TaskContext, Long), TaskLease]()

  /** Leases shards to the task until it ends. Both inputs of a join install the same lease. */
  def install(context: TaskContext, region: RegionLease, shards: Array[Int]): Unit = {
    val lease = new TaskLease(region, shards)
    region.spec.operators.foreach { o =>
      if (leases.put((context, o.operatorId), lease) == null) {
        context.addTaskCompletionListener[Unit](_ => leases.remove((context, o.operatorId)))
      }
    }
  }

  /** The lease of an operator in the running task, if one was installed. */
  def find(operatorId: Long): Option[TaskLease] =
    Option(TaskContext.get()).flatMap(c => Option(leases.get((c, operatorId))))

  /** Number of leases that are installed now, over all tasks of this JVM. */
  def size: Int = leases.size()

  override def held: Map[String, Long] = Map("leases" -> size.toLong)

  override def close(): Unit = leases.clear()
}
