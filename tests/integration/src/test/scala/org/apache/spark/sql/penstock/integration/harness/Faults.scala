package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.shuffle.FetchFailedException
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.udf
import org.apache.spark.{
  FetchFailed,
  MapOutputTrackerMaster,
  SparkContext,
  SparkEnv,
  Success,
  TaskContext,
  TaskEndReason
}

/** Faults that an expression on top of a query injects from inside its last stage. */
object Faults {

  /** Makes every task of the last stage fail on its third row, in its first attempt. */
  def failTasksOnce(rows: DataFrame): DataFrame = inject(rows, new FailOnThirdRow)

  /** Makes one task of the last stage lose a map output that it has read, after others had time to commit. */
  def loseMapOutputOnce(rows: DataFrame): DataFrame = inject(rows, new LoseMapOutput)

  /**
   * A map output of the running stage, reported as lost. Exchanges are numbered from the sources up, so the last one
   * feeds this stage. Works on the driver only.
   */
  def newestMapOutput(): Option[FetchFailedException] = {
    val tracker = SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]
    val shuffle = tracker.shuffleStatuses.keys.max
    tracker.shuffleStatuses(shuffle).withMapStatuses(_.zipWithIndex.collectFirst {
      case (status, index) if status != null =>
        new FetchFailedException(status.location, shuffle, status.mapId, index, 0, "a map output lost on purpose")
    })
  }

  /** Adds a fault to the tasks that emit the query's rows. */
  def inject(rows: DataFrame, fault: RowFault): DataFrame = {
    val pass = udf(() => fault.onRow()).asNondeterministic()
    rows.filter(pass())
  }

  /** Runs `body` and returns how the tasks of the application ended meanwhile. */
  def countingTaskEnds[T](context: SparkContext)(body: => T): (T, Seq[TaskEndReason]) = {
    val ends = new TaskEnds
    (listening(context, ends)(body), ends.reasons)
  }

  /** Runs `body` while a listener receives all events until the end. */
  def listening[T](context: SparkContext, listener: SparkListener)(body: => T): T = {
    context.addSparkListener(listener)
    try {
      val result = body
      context.listenerBus.waitUntilEmpty()
      result
    } finally context.removeSparkListener(listener)
  }

  def fetchFailures(reasons: Seq[TaskEndReason]): Int = reasons.count(_.isInstanceOf[FetchFailed])

  def failures(reasons: Seq[TaskEndReason]): Int = reasons.count(_ != Success)
}

private class TaskEnds extends SparkListener {
  private var ended = Vector.empty[TaskEndReason]

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized(ended :+= end.reason)

  def reasons: Seq[TaskEndReason] = synchronized(ended)
}

/** Called for every row. Each task has its own copy. */
trait RowFault extends Serializable {
  private var rows = 0

  final def onRow(): Boolean = {
    rows += 1
    strike(TaskContext.get(), rows)
    true
  }

  protected def strike(context: TaskContext, row: Int): Unit
}

private class FailOnThirdRow extends RowFault {
  override protected def strike(context: TaskContext, row: Int): Unit =
    if (row == 3 && context.attemptNumber() == 0 && context.stageAttemptNumber() == 0) {
      throw new IllegalStateException("a task that fails on purpose")
    }
}

private class LoseMapOutput extends RowFault {
  override protected def strike(context: TaskContext, row: Int): Unit =
    // The first task of a stage that emits a row loses the output. Which task that is cannot be predicted.
    if (row == 1 && context.stageAttemptNumber() == 0 && LoseMapOutput.struck.add(context.stageId())) {
      if (context.numPartitions() > 1) Thread.sleep(LoseMapOutput.HeadStartMillis)
      Faults.newestMapOutput().foreach(throw _)
    }
}

private object LoseMapOutput {

  /** Stages that have lost an output. Stage ids are per application. */
  val struck: java.util.Set[Int] = java.util.concurrent.ConcurrentHashMap.newKeySet[Int]()
  private val HeadStartMillis = 150L
}
