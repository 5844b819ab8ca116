package io.penstock

import scala.collection.mutable

import org.apache.spark.scheduler._
import org.apache.spark.{SparkContext, Success}

import org.slf4j.LoggerFactory

/**
 * Detects executors that cannot start because of the plugin: it is missing on their class path, or it was built for
 * another Spark version. Spark replaces such executors forever while jobs wait. After several failures in a row, with
 * no successful task in between, the waiting jobs are cancelled with an error that states the reason.
 *
 * @param cancel
 *   Cancels a job; gets the job's id and the reason
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
        "executor needs the same Penstock jar as the driver, built for the same Spark version. Pass the jar to the " +
        "application with --jars, or add it to spark.executor.extraClassPath on every host"
      log.error(text)
      if (failed >= Limit) {
        failed = 0
        jobs.foreach(cancel(_, text))
      }
    }
  }
}

object ExecutorStarts {

  /** Number of executors that must fail in a row before jobs are cancelled. */
  val Limit = 4

  /** Whether the reason why an executor was removed names the plugin. */
  def blamesPlugin(reason: String): Boolean =
    reason != null && (reason.contains(classOf[PenstockPlugin].getName) || reason.contains("PENSTOCK_"))

  /** Watches an application's executors. */
  def watch(context: SparkContext): Unit = context.addSparkListener(new ExecutorStarts(context.cancelJob(_, _)))
}
