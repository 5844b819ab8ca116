package io.penstock.benchmarks.work

import java.util.concurrent.locks.LockSupport

import org.apache.spark.TaskContext

/**
 * Work that takes time and no processor. What a task owes is counted from the task's first row, so that waking up late
 * once does not add up.
 */
object Service {
  final private class Debt(val task: Long, val since: Long) { var ns = 0L }
  private val debts = new ThreadLocal[Debt]

  /** Returns when all work of the running task so far, and this, has had its time. */
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
