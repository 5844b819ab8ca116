package org.apache.spark.sql.penstock.routing

import java.util.concurrent.atomic.AtomicReference

import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, State, StreamExecution, TERMINATED}
import org.apache.spark.sql.streaming.StreamingQueryException

/**
 * Accesses private parts of Spark's query that has just started, in the query's own thread: reads its options, and lets
 * it fail before it does anything. If a Spark version has other private parts, invalid options fail the query at its
 * first batch instead (decision 023).
 */
private object StartedQuery extends Logging {

  /** Options of a micro-batch query; None if they cannot be read. */
  def options(query: StreamExecution): Option[Map[String, String]] = query match {
    case _: MicroBatchExecution =>
      Try {
        val field = classOf[MicroBatchExecution].getDeclaredField("extraOptions")
        field.setAccessible(true)
        field.get(query).asInstanceOf[Map[String, String]]
      }.toOption
    case _ => None
  }

  /** Makes a query end with an error instead of running, as if the error had stopped it. */
  def fail(query: StreamExecution, error: Throwable): Unit = {
    val failure = new StreamingQueryException(
      s"query ${query.id} was not started",
      error,
      "",
      "",
      "STREAM_FAILED",
      Map("id" -> query.id.toString, "runId" -> query.runId.toString, "message" -> error.getMessage)
    )
    // These members are protected in Scala but public in the JVM.
    val failed = Try {
      classOf[StreamExecution].getMethod(
        "streamDeathCause_$eq",
        classOf[StreamingQueryException]
      ).invoke(query, failure)
      val state = classOf[StreamExecution].getMethod("state").invoke(query).asInstanceOf[AtomicReference[State]]
      state.set(TERMINATED)
    }
    if (failed.isSuccess) logError(s"Penstock: query ${query.id} was not started", error)
    else logWarning(s"Penstock: query ${query.id} will fail at its first batch", error)
  }
}
