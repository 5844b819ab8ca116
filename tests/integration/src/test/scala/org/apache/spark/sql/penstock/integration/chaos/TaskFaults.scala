package org.apache.spark.sql.penstock.integration.chaos

import org.apache.spark.TaskContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.penstock.integration.harness.{Faults, QueryRun, RowFault}

import io.penstock.faults.{Fault, FaultPlan}

/**
 * Applies a plan's faults to the tasks of a query's last stage. If processes end in an orderly way in a further action
 * on a batch, its tasks are slow, especially those of an ending process, so that other executors run them as well.
 */
final private class TaskFaults(settings: Map[String, String], pauseMs: Int) extends RowFault {
  @transient private lazy val plan = FaultPlan.of(settings.get(_).orNull)

  override protected def strike(context: TaskContext, row: Int): Unit = {
    val action = Option(context.getLocalProperty(QueryRun.ActionProperty)).getOrElse("1")
    val batch = Option(context.getLocalProperty(TaskFaults.BatchProperty)).map(_.toLong)
    if (row == 1) {
      val places = Seq(Fault.AnyAction, action)
      context.addTaskCompletionListener[Unit](c =>
        if (!c.isFailed()) places.foreach(plan.at(Fault.TaskEnd, _, batch))
      )
      places.foreach(plan.at(Fault.FirstRow, _, batch, losing = () => Faults.newestMapOutput().foreach(throw _)))
    }
    if (pauseMs > 0 && plan.ends(action, batch)) {
      Thread.sleep(pauseMs.toLong * (if (FaultPlan.isEnding) TaskFaults.LagFactor else 1))
    }
  }
}

object TaskFaults {
  private val BatchProperty = "streaming.sql.batchId"
  private val LagFactor = 10

  /** Adds the faults to the tasks that emit the query's rows. */
  def inject(settings: Map[String, String], pauseMs: Int)(rows: DataFrame): DataFrame =
    Faults.inject(rows, new TaskFaults(settings, pauseMs))
}
