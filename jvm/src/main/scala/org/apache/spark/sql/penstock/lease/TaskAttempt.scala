package org.apache.spark.sql.penstock.lease

import org.apache.spark.TaskContext

/**
 * An attempt of a task, as Spark identifies it.
 *
 * @param stageId
 *   id of the stage. Stages of a later action on the same batch have larger ids
 * @param stageAttempt
 *   number of the stage attempt. It grows each time the stage is submitted again, possibly with other input
 * @param partition
 *   partition of the stage's RDD
 * @param number
 *   number of the attempt among those of its task in its stage attempt
 * @param id
 *   task attempt id, unique in the application
 */
final case class TaskAttempt(stageId: Int, stageAttempt: Int, partition: Int, number: Int, id: Long) {
  override def toString: String = s"task attempt $id (stage $stageId.$stageAttempt, task $partition.$number)"
}

object TaskAttempt {
  def of(c: TaskContext): TaskAttempt =
    TaskAttempt(c.stageId(), c.stageAttemptNumber(), c.partitionId(), c.attemptNumber(), c.taskAttemptId())
}

/** State of a task attempt in Spark's scheduler. */
sealed trait AttemptState

object AttemptState {
  case object Running extends AttemptState

  /** Spark counts this attempt, or another one of the same task. */
  case object Succeeded extends AttemptState

  /** Spark does not count this attempt. */
  case object Failed extends AttemptState
}

trait AttemptStates {
  def of(attempt: TaskAttempt): AttemptState
}
