package org.apache.spark.sql.penstock.integration.handover

import java.nio.file.Path

import io.penstock.Patience
import org.scalatest.time.{Millis, Seconds, Span}

/**
 * Ends an executor in an orderly way while an action runs: soon after another executor has started to read what this
 * one committed in an earlier action, or after a limit if none does.
 *
 * @param readers
 *   Directory that [[SlowRead]] fills
 * @param own
 *   Partitions that the executor has read in the action before
 * @param afterMs
 *   Delay after another executor has started to read, in milliseconds
 */
final class ExecutorEnd(readers: Path, own: Seq[ReadPartition], afterMs: Int) {
  import ExecutorEnd._

  private val executor = own.head
  @volatile private var over = false
  @volatile private var how: How = TooLate
  private val thread = new Thread(() => end())
  thread.setDaemon(true)
  thread.start()

  /** Must be called when the action is over. Returns whether an executor was ended, and how. */
  def stop(): How = {
    over = true
    thread.join()
    how
  }

  private def end(): Unit = {
    Patience.holdsWithin(limit, every = lookInterval)(isReadByAnother || over): Unit
    val found = isReadByAnother
    // Part of the fault: ends at different times within the reading are wanted.
    if (found) Thread.sleep(afterMs.toLong)
    if (!over) {
      how = if (found) WhileAnotherReads else Alone
      ProcessHandle.of(executor.pid).ifPresent(_.destroy(): Unit)
    }
  }

  private def isReadByAnother: Boolean = SlowRead.readers(readers).exists(reader =>
    reader.executor != executor.executor && own.exists(_.partition == reader.partition)
  )
}

object ExecutorEnd {
  private val limit = Span(2, Seconds)
  private val lookInterval = Span(2, Millis)

  sealed abstract class How(override val toString: String)
  case object WhileAnotherReads extends How("an executor ended while another read what it had committed")
  case object Alone extends How("an executor ended while nobody else read what it had committed")
  case object TooLate extends How("no executor ended: the action was over before")
}
