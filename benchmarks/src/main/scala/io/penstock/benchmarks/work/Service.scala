package io.penstock.benchmarks.work

import java.util.concurrent.locks.LockSupport

import org.apache.spark.TaskContext

/**
 * Work that takes time but no processor. The end of each wait is computed from the start of the task's work, so that
 * late wake-ups do not add up.
 */
object Service {
  final private class Debt(val task: Long, val since: Long) { var ns = 0L }
  private val debts = new ThreadLocal[Debt]

  /** Waits until the time for all work of the running task so far has passed, including this work. */
  def serve(ns: Long): Unit = {
    val task = TaskContext.get().taskAttemptId()
    if (debts.get() == null || debts.get().task != task) debts.set(new Debt(task, System.nanoTime()))
    val debt = debts.get()
    debt.ns += ns
    val end = debt.since + debt.ns
    var left = end - System.nanoTime()
    while (left > 0) {
      LockSupport.parkNanos(left)
      left = end - System.nanoTime()
    }
  }
}
