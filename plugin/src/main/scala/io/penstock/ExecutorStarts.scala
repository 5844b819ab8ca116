package io.penstock

import scala.collection.mutable

import org.apache.spark.scheduler._
import org.apache.spark.{SparkContext, Success}

import org.slf4j.LoggerFactory

/**
 * Notices executors that cannot start because of the plugin: their class path lacks it, or it was built for another
 * Spark. Spark replaces such executors for ever while jobs wait. After several in a row, with no task that ran, the
 * waiting jobs are cancelled, and their error says why.
 *
 * @param cancel
 *   cancels a job, for a reason
 */
class ExecutorStarts(cancel: (Int, String) => Unit) extends SparkListener {
  import ExecutorStarts._

  private val log = LoggerFactory.getLogger(getClass)
  private val jobs = mutable.Set.empty[Int]
  private var failed = 0

  override def onJobStart(start: SparkListenerJobStart): Unit = synchronized(jobs += start.jobId)

  override def onJobEnd(end: SparkListenerJobEnd): Unit = synchronized(jobs -= end.jobId)

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized(if (end.reason == Success) failed = 0)

  override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit = synchronized {
    if (blamesPlugin(removed.reason)) {
      failed += 1
      val text = s"[PENSTOCK_EXECUTOR_START] executor ${removed.executorId} did not start: ${removed.reason}. Every " +
        "executor needs the jar that the driver has, built for the same Spark: give it to the application with --jars, " +
        "or put it on spark.executor.extraClassPath on every host"
      log.error(text)
      if (failed >= Limit) {
        failed = 0
        jobs.foreach(cancel(_, text))
      }
    }
  }
}

object ExecutorStarts {

  /** Executors in a row that may fail to start before jobs are cancelled. */
  val Limit = 4

  /** Whether an executor's last words name the plugin. */
  def blamesPlugin(reason: String): Boolean =
    reason != null && (reason.contains(classOf[PenstockPlugin].getName) || reason.contains("PENSTOCK_"))

  /** Watches an application's executors. */
  def watch(context: SparkContext): Unit = context.addSparkListener(new ExecutorStarts(context.cancelJob(_, _)))
}
