package org.apache.spark.sql.penstock.integration.chaos

import org.apache.spark.TaskContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.penstock.integration.harness.{Faults, RowFault}

import io.penstock.faults.{Fault, FaultPlan}

/** Lets a plan's faults strike the tasks of a query's last stage. */
final private class TaskFaults(settings: Map[String, String]) extends RowFault {
  @transient private lazy val plan = FaultPlan.of(settings.get(_).orNull)

  override protected def strike(context: TaskContext, row: Int): Unit = if (row == 1) {
    val batch = Option(context.getLocalProperty(TaskFaults.BatchProperty)).map(_.toLong)
    context.addTaskCompletionListener[Unit](c => if (!c.isFailed()) plan.at(Fault.TaskEnd, "-", batch))
    plan.at(Fault.FirstRow, "-", batch, losing = () => Faults.newestMapOutput().foreach(throw _))
  }
}

object TaskFaults {
  private val BatchProperty = "streaming.sql.batchId"

  /** The query with faults in the tasks that hand over its rows. */
  def inject(settings: Map[String, String])(rows: DataFrame): DataFrame = Faults.inject(rows, new TaskFaults(settings))
}
