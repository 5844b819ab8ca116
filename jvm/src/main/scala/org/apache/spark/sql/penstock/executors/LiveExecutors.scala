package org.apache.spark.sql.penstock.executors

import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler.{ExecutorCacheTaskLocation, TaskLocation}
import org.apache.spark.util.Utils
import org.apache.spark.{ExecutorAllocationClient, SparkContext}

import io.penstock.routing.ExecutorSet

/** The executors of an application that get tasks. Excludes executors that Spark is about to end, or has excluded. */
object LiveExecutors {

  /** The executors in the order in which they registered; none in local mode. */
  def of(context: SparkContext): ExecutorSet =
    if (context.isLocal) ExecutorSet.None
    else {
      val active = isActive(context)
      val cpus = math.max(1, context.getConf.getInt("spark.task.cpus", 1))
      val found = context.statusStore.executorList(activeOnly = true)
        .filter(e => e.totalCores >= cpus && active(e.id))
        .sortBy(e => (e.id.length, e.id))
      ExecutorSet(
        found.iterator.map(e => ExecutorCacheTaskLocation(Utils.parseHostPort(e.hostPort)._1, e.id).toString).toVector,
        found.iterator.map(_.totalCores / cpus).toVector
      )
    }

  /** Current number of executors, at least 1. Makes no remote call, so that the scheduler may ask. */
  def count(context: SparkContext): Int = context.schedulerBackend match {
    case cluster: ExecutorAllocationClient => math.max(1, cluster.getExecutorIds().size)
    case _ => 1
  }

  /**
   * Whether the executor with a task location gets tasks. Makes no remote call, so that the scheduler may ask. While a
   * task that is not running prefers an executor that has ended, the scheduler delays all such tasks by
   * `spark.locality.wait` for each level of locality.
   */
  def getsTasks(context: SparkContext): String => Boolean = {
    val active = isActive(context)
    location =>
      TaskLocation(location) match {
        case executor: ExecutorCacheTaskLocation => active(executor.executorId)
        case _ => true
      }
  }

  private def isActive(context: SparkContext): String => Boolean = context.schedulerBackend match {
    case backend: ExecutorAllocationClient => backend.isExecutorActive
    case _ => _ => true
  }

  /**
   * Number of tasks that the application can run at once. It is 2, as Spark assumes, while no executor has registered.
   */
  def tasksAtOnce(context: SparkContext): Int = {
    val now = context.maxNumConcurrentTasks(ResourceProfile.getOrCreateDefaultProfile(context.getConf))
    if (now > 0) now else 2
  }
}
