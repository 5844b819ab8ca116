package org.apache.spark.sql.penstock.commit

import org.apache.spark.TaskContext

/**
 * An attempt of a task, as Spark names it.
 *
 * @param stageId
 *   grows with every stage: that of a later action on the same batch is larger
 * @param stageAttempt
 *   grows each time the stage is submitted again, with other input perhaps
 * @param partition
 *   of the stage's RDD
 * @param number
 *   of the attempt, of those of its task in its stage attempt
 * @param id
 *   of its own in the application
 */
final case class TaskAttempt(stageId: Int, stageAttempt: Int, partition: Int, number: Int, id: Long) {
  override def toString: String = s"task attempt $id (stage $stageId.$stageAttempt, task $partition.$number)"
}

object TaskAttempt {
  def of(c: TaskContext): TaskAttempt =
    TaskAttempt(c.stageId(), c.stageAttemptNumber(), c.partitionId(), c.attemptNumber(), c.taskAttemptId())
}

/** What has become of an attempt. */
sealed trait AttemptState

object AttemptState {
  case object Running extends AttemptState

  /** Spark counts it, or another of its task. */
  case object Succeeded extends AttemptState

  /** Spark does not count it. */
  case object Failed extends AttemptState
}

trait AttemptStates {
  def of(attempt: TaskAttempt): AttemptState
}
