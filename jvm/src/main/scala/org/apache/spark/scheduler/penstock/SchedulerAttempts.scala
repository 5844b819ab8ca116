package org.apache.spark.scheduler.penstock

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.TaskSchedulerImpl
import org.apache.spark.sql.penstock.commit.{AttemptState, AttemptStates, TaskAttempt}

/** Asks Spark's scheduler, which knows at any time which attempts run, and which one of a task counts. */
object SchedulerAttempts extends AttemptStates {
  override def of(attempt: TaskAttempt): AttemptState =
    SparkContext.getActive.map(_.taskScheduler) match {
      case Some(scheduler: TaskSchedulerImpl) => scheduler.synchronized {
          scheduler.taskSetManagerForAttempt(attempt.stageId, attempt.stageAttempt) match {
            // All tasks of the stage attempt have ended: each has an attempt that counts, or nobody asks for it any more.
            case None => AttemptState.Succeeded
            case Some(tasks) => tasks.taskInfos.get(attempt.id) match {
                case Some(info) if info.successful => AttemptState.Succeeded
                case Some(info) if info.running => AttemptState.Running
                case _ => AttemptState.Failed
              }
          }
        }
      // Another scheduler does not tell: what comes last counts.
      case _ => AttemptState.Failed
    }
}
