package org.apache.spark.sql.penstock.commit

import java.util.concurrent.{ScheduledExecutorService, TimeUnit}

import org.apache.spark.util.ThreadUtils

/** Handles commits again that wait for the end of another attempt. Its thread starts with the first of them. */
final class CommitClock extends AutoCloseable {
  private var thread: Option[ScheduledExecutorService] = None

  /** Runs work a little later. */
  def later(work: Runnable): Unit = synchronized {
    val clock = thread.getOrElse(ThreadUtils.newDaemonSingleThreadScheduledExecutor("penstock-undecided"))
    thread = Some(clock)
    clock.schedule(work, CommitClock.AfterMs, TimeUnit.MILLISECONDS): Unit
  }

  /** Number of threads that have not ended. */
  def size: Int = synchronized(thread.count(!_.isTerminated))

  /** Forgets the work that waits, and refuses more once the thread has started. */
  override def close(): Unit = synchronized(thread.foreach(_.shutdownNow()))
}

private object CommitClock {
  val AfterMs = 50L
}
