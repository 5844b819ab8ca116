package io.penstock.benchmarks.work

import java.util.concurrent.locks.LockSupport

import org.apache.spark.TaskContext

/**
 * Work that takes time and no processor: one millisecond a row. What a task owes is counted from the task's first row,
 * so that waking up late once does not add up.
 */
object Service {
  private val nanosPerRow = 1000 * 1000L

  final private class Debt(val task: Long, val since: Long) { var rows = 0L }
  private val debts = new ThreadLocal[Debt]

  /** Returns when all rows that the running task served so far, and these, have had their time. */
  def serve(rows: Int): Unit = {
    val task = TaskContext.get().taskAttemptId()
    if (debts.get() == null || debts.get().task != task) debts.set(new Debt(task, System.nanoTime()))
    val debt = debts.get()
    debt.rows += rows
    val end = debt.since + debt.rows * nanosPerRow
    var left = end - System.nanoTime()
    while (left > 0) {
      LockSupport.parkNanos(left)
      left = end - System.nanoTime()
    }
  }
}
