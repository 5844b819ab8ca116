package org.apache.spark.sql.penstock.commit

import scala.concurrent.duration._
import scala.concurrent.{Await, Promise}

/** Commits as a task sees them: it waits for the answer. */
object Commits {
  def commit(to: QueryCommits, message: TaskCommitted): Unit = {
    val answered = Promise[Unit]()
    to.committed(message)(answered.complete(_): Unit)
    Await.result(answered.future, 30.seconds)
  }

  /** The only attempt of the only task of a stage. */
  def attempt(stageId: Int = 0): TaskAttempt = TaskAttempt(stageId, 0, 0, 0, stageId.toLong)

  /** What Spark says of attempts, as a test has it. */
  final class States extends AttemptStates {
    private var known = Map.empty[TaskAttempt, AttemptState]
    def update(attempt: TaskAttempt, state: AttemptState): Unit = synchronized(known += attempt -> state)
    override def of(attempt: TaskAttempt): AttemptState =
      synchronized(known.getOrElse(attempt, AttemptState.Running))
  }
}
