package org.apache.spark.sql.penstock.integration.harness

import scala.util.Try

import org.apache.spark.{SparkContext, SparkEnv}

import io.penstock.Patience
import io.penstock.sidecars.transfer.ExecutorTransfer

/** The processes of a cluster's executors, as reported by tasks. */
object ExecutorProcesses {
  private val TaskMillis = 20L

  /** Waits until enough executors have a sidecar, and returns their process ids by executor. */
  def awaitSidecars(context: SparkContext, count: Int): Map[String, Long] = {
    // An error of the job itself ends the wait.
    Patience.eventually {
      val found = Try(withSidecar(context))
      require(found.fold(_ => true, _.size >= count), s"only these executors have a sidecar: $found")
      found
    }.get
  }

  private def withSidecar(context: SparkContext): Map[String, Long] = {
    val tasks = context.defaultParallelism * 4
    context.parallelize(1 to tasks, tasks).map { _ =>
      // Without a pause one executor would run all tasks.
      Thread.sleep(TaskMillis)
      (SparkEnv.get.executorId, ProcessHandle.current().pid(), ExecutorTransfer.current.addresses.nonEmpty)
    }.collect().collect { case (executor, pid, true) => executor -> pid }.toMap
  }
}
