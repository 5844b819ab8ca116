package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.util.ManualClock

import io.penstock.Patience
import org.scalatest.time.{Millis, Seconds, Span}

/**
 * A trigger clock that only the test moves, and that knows when its query waits for it. One tick runs at most one
 * batch, so processing time and the division of the input into batches are the same in every run.
 */
final class TriggerClock extends ManualClock(1000000L) {
  import TriggerClock._

  @volatile private var waitsFor = Long.MinValue

  override def waitTillTime(target: Long): Long = {
    waitsFor = target
    super.waitTillTime(target)
  }

  /** Lets the query run one batch, if it has a reason to, and returns when it has. */
  def tick(query: StreamingQuery): Unit = {
    advance(TickMillis)
    awaitIdle(query)
  }

  /** Moves the clock by a tick while no query runs. */
  def skip(): Unit = advance(TickMillis)

  /** Returns when the query waits for the clock. Throws the query's error if it fails. */
  def awaitIdle(query: StreamingQuery): Unit = {
    if (!Patience.holdsWithin(Limit, every = LookInterval)(waits || !query.isActive)) {
      query.stop()
      throw new IllegalStateException(s"a batch took more than $Limit: ${query.lastProgress}")
    }
    if (!waits) throw query.exception.getOrElse(new IllegalStateException("the query stopped without an error"))
  }

  private def waits: Boolean = waitsFor > getTimeMillis()

  /** Resets the waiting state. Must be called between two runs on this clock. */
  def reset(): Unit = waitsFor = Long.MinValue
}

object TriggerClock {
  val TriggerMillis = 1000L
  val TickMillis = 2000L
  private val Limit = Span(120, Seconds)
  private val LookInterval = Span(1, Millis)
}
