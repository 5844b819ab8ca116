package io.penstock.process

import java.util.concurrent.{Executor, ThreadPoolExecutor, TimeUnit}

/**
 * A pool of daemon threads that ends with its owner.
 *
 * @param threads
 *   the pool. Only this object ends it
 */
final class DaemonPool(threads: ThreadPoolExecutor) extends Executor with AutoCloseable {

  /** Number of threads that have not ended. */
  def size: Int = threads.getPoolSize

  /** Runs a task on a thread of the pool. Throws `RejectedExecutionException` after [[close]]. */
  override def execute(task: Runnable): Unit = threads.execute(task)

  /** Lets running tasks finish for a short time, and then interrupts them. No further task is started. */
  override def close(): Unit = {
    threads.shutdown()
    threads.getQueue.clear()
    if (!threads.awaitTermination(DaemonPool.FinishMs, TimeUnit.MILLISECONDS)) threads.shutdownNow(): Unit
  }
}

private object DaemonPool {

  /** A file is usually written within this time. A file system that hangs must not delay the end of an application. */
  val FinishMs = 1000L
}
