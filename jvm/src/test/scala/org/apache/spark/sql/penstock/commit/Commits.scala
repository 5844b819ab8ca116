package org.apache.spark.sql.penstock.commit

import scala.concurrent.duration._
import scala.concurrent.{Await, Promise}

import org.apache.spark.sql.penstock.lease.{AttemptState, AttemptStates, TaskAttempt}

/** Sends commits as a task does: it waits for the answer. */
object Commits {
  def commit(to: QueryCommits, message: TaskCommitted): Unit = {
    val answered = Promise[Unit]()
    to.committed(message)(answered.complete(_): Unit)
    Await.result(answered.future, 30.seconds)
  }

  /** The only attempt of a stage with one task. */
  def attempt(stageId: Int = 0): TaskAttempt = TaskAttempt(stageId, 0, 0, 0, stageId.toLong)

  /** Attempt states that a test sets in place of Spark. */
  final class States extends AttemptStates {
    private var known = Map.empty[TaskAttempt, AttemptState]
    def update(attempt: TaskAttempt, state: AttemptState): Unit = synchronized(known += attempt -> state)
    override def of(attempt: TaskAttempt): AttemptState =
      synchronized(known.getOrElse(attempt, AttemptState.Running))
  }
}
