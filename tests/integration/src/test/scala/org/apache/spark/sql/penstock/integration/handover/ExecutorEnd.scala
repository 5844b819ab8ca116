package org.apache.spark.sql.penstock.integration.handover

import java.nio.file.Path

/**
 * Ends an executor in an orderly way while an action runs: soon after another executor has begun to read what this one has
 * committed in an action before. Where none does for long, it ends any one.
 *
 * @param readers
 *   directory that [[SlowRead]] fills
 * @param before
 *   partitions as an action before has read them
 * @param afterMs
 *   how soon
 */
final class ExecutorEnd(readers: Path, before: Seq[ReadPartition], afterMs: Int) {
  import ExecutorEnd._

  private val owners = before.map(read => read.partition -> read).toMap
  @volatile private var over = false
  @volatile private var how: How = TooLate
  private val thread = new Thread(() => end())
  thread.setDaemon(true)
  thread.start()

  /** To be called when the action is over: whether an executor was ended, and how. */
  def stop(): How = {
    over = true
    thread.join()
    how
  }

  private def end(): Unit = {
    val deadline = System.nanoTime() + PatienceMs * 1000000L
    var found = readByAnother
    while (found.isEmpty && !over && System.nanoTime() < deadline) {
      Thread.sleep(2)
      found = readByAnother
    }
    if (found.nonEmpty) Thread.sleep(afterMs.toLong)
    if (!over) {
      how = if (found.isEmpty) Alone else WhileAnotherReads
      val ending = found.orElse(before.headOption)
      ending.foreach(read => ProcessHandle.of(read.pid).ifPresent(_.destroy(): Unit))
    }
  }

  private def readByAnother: Option[ReadPartition] = SlowRead.readers(readers).collectFirst {
    case reader if owners.get(reader.partition).exists(_.executor != reader.executor) => owners(reader.partition)
  }
}

object ExecutorEnd {
  private val PatienceMs = 1200L

  sealed abstract class How(override val toString: String)
  case object WhileAnotherReads extends How("an executor ended while another read what it had committed")
  case object Alone extends How("an executor ended while nobody else read what it had committed")
  case object TooLate extends How("no executor ended: the action was over before")
}
