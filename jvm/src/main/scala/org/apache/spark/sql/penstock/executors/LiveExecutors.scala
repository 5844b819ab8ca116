package org.apache.spark.sql.penstock.executors

import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.util.Utils
import org.apache.spark.{ExecutorAllocationClient, SparkContext}

import io.penstock.routing.ExecutorSet

/** The executors of an application that get tasks. Excludes executors that Spark is about to end, or has excluded. */
object LiveExecutors {

  /** The executors in the order in which they registered; none in local mode. */
  def of(context: SparkContext): ExecutorSet =
    if (context.isLocal) ExecutorSet.None
    else {
      val getsTasks: String => Boolean = context.schedulerBackend match {
        case backend: ExecutorAllocationClient => backend.isExecutorActive
        case _ => _ => true
      }
      val cpus = math.max(1, context.getConf.getInt("spark.task.cpus", 1))
      val found = context.statusStore.executorList(activeOnly = true)
        .filter(e => e.totalCores >= cpus && getsTasks(e.id))
        .sortBy(e => (e.id.length, e.id))
      ExecutorSet(
        found.iterator.map(e => ExecutorCacheTaskLocation(Utils.parseHostPort(e.hostPort)._1, e.id).toString).toVector,
        found.iterator.map(_.totalCores / cpus).toVector
      )
    }

  /**
   * Number of tasks that the application can run at once. It is 2, as Spark assumes, while no executor has registered.
   */
  def tasksAtOnce(context: SparkContext): Int = {
    val now = context.maxNumConcurrentTasks(ResourceProfile.getOrCreateDefaultProfile(context.getConf))
    if (now > 0) now else 2
  }
}
