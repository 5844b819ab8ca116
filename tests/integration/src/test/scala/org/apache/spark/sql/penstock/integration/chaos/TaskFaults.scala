package org.apache.spark.sql.penstock.integration.chaos

import org.apache.spark.TaskContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.penstock.integration.harness.Faults

import io.penstock.faults.{Fault, FaultPlan}

/** Lets a plan's faults strike the tasks of a query's last stage. Called for every row; each task has a copy of its own. */
final private class TaskFaults(settings: Map[String, String]) extends Serializable {
  @transient private lazy val plan = FaultPlan.of(settings.get(_).orNull)
  private var rows = 0

  def onRow(): Boolean = {
    rows += 1
    if (rows == 1) {
      val context = TaskContext.get()
      val batch = Option(context.getLocalProperty(TaskFaults.BatchProperty)).map(_.toLong)
      context.addTaskCompletionListener[Unit](c => if (!c.isFailed()) plan.at(Fault.TaskEnd, "-", batch))
      plan.at(Fault.FirstRow, "-", batch, losing = () => Faults.newestMapOutput().foreach(throw _))
    }
    true
  }
}

object TaskFaults {
  private val BatchProperty = "streaming.sql.batchId"

  /** The query with faults in the tasks that hand over its rows. */
  def inject(settings: Map[String, String])(rows: DataFrame): DataFrame = {
    val faults = new TaskFaults(settings)
    rows.filter(udf(() => faults.onRow()).asNondeterministic().apply())
  }
}
