package org.apache.spark.sql.penstock.routing

import java.util.concurrent.atomic.AtomicReference

import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, State, StreamExecution, TERMINATED}
import org.apache.spark.sql.streaming.StreamingQueryException

/**
 * Of a query that has just started, in its own thread, what Spark keeps to itself: its options, and that it may fail before
 * it has done anything. Where a Spark keeps them otherwise, wrong options fail the query at its first batch (decision 023).
 */
private object StartedQuery extends Logging {

  /** Options of a query in micro-batches; None where they are not found. */
  def options(query: StreamExecution): Option[Map[String, String]] = query match {
    case _: MicroBatchExecution =>
      Try {
        val field = classOf[MicroBatchExecution].getDeclaredField("extraOptions")
        field.setAccessible(true)
        field.get(query).asInstanceOf[Map[String, String]]
      }.toOption
    case _ => None
  }

  /** Lets a query end with an error instead of running, as if it had been stopped by it. */
  def fail(query: StreamExecution, error: Throwable): Unit = {
    val failure = new StreamingQueryException(
      s"query ${query.id} was not started",
      error,
      "",
      "",
      "STREAM_FAILED",
      Map("id" -> query.id.toString, "runId" -> query.runId.toString, "message" -> error.getMessage)
    )
    // Protected in Scala, public to the JVM.
    val failed = Try {
      classOf[StreamExecution].getMethod(
        "streamDeathCause_$eq",
        classOf[StreamingQueryException]
      ).invoke(query, failure)
      val state = classOf[StreamExecution].getMethod("state").invoke(query).asInstanceOf[AtomicReference[State]]
      state.set(TERMINATED)
    }
    if (failed.isSuccess) logError(s"Query ${query.id} was not started", error)
    else logWarning(s"Query ${query.id} will fail at its first batch", error)
  }
}
