package org.apache.spark.scheduler.penstock

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.TaskSchedulerImpl
import org.apache.spark.sql.penstock.lease.{AttemptState, AttemptStates, TaskAttempt}

/** Asks Spark's task scheduler which attempts are running and which attempt of a task counts. */
object SchedulerAttempts extends AttemptStates {
  override def of(attempt: TaskAttempt): AttemptState =
    SparkContext.getActive.map(_.taskScheduler) match {
      case Some(scheduler: TaskSchedulerImpl) => scheduler.synchronized {
          scheduler.taskSetManagerForAttempt(attempt.stageId, attempt.stageAttempt) match {
            // All tasks of the stage attempt have ended: an attempt of each counts, or its result is no longer needed.
            case None => AttemptState.Succeeded
            case Some(tasks) => tasks.taskInfos.get(attempt.id) match {
                case Some(info) if info.successful => AttemptState.Succeeded
                case Some(info) if info.running => AttemptState.Running
                case _ => AttemptState.Failed
              }
          }
        }
      // Other schedulers do not expose the states of attempts, so the attempt that commits last counts.
      case _ => AttemptState.Failed
    }
}
