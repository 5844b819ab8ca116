package io.penstock.sidecars.transfer

import java.util.concurrent.Executors

import scala.util.control.NonFatal

import io.penstock.process.{BackOff, DaemonThreads}
import org.slf4j.LoggerFactory

/**
 * Keeps an executor's transfer sidecar running: starts it with the executor, and again after failures, with a growing
 * pause. Without a running sidecar, questions fail at once.
 *
 * @param command
 *   the program and its arguments; the folder is appended as the last argument
 * @param remedy
 *   what a user can do if the sidecar does not start
 * @param introduce
 *   called with the introduction of each new process, and with None when the process has ended
 * @param pause
 *   returns the pause in ms after a number of failures in a row
 */
final class TransferSidecar(
    command: Seq[String],
    settings: TransferSettings,
    source: AnswerSource,
    remedy: String,
    introduce: Option[Introduction] => Unit,
    pause: Int => Long = BackOff.pauseMs
) extends AutoCloseable {
  private val log = LoggerFactory.getLogger(getClass)
  private val clock = Executors.newSingleThreadScheduledExecutor(DaemonThreads.named("penstock-transfer-clock"))
  private val memories = new ChannelMemories
  @volatile private var running: Option[TransferProcess] = None
  @volatile private var closed = false
  private var failureLogged = false

  private val thread = DaemonThreads.named("penstock-transfer").newThread(() => keep())
  thread.start()

  /** Asks the executor of a peer; see [[TransferProcess.ask]]. */
  def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A] =
    running.fold[Outcome[A]](TransferSidecar.none)(_.ask(peer, payload, limitMs)(read))

  /** Sends bytes to the sidecar and back. */
  def echo(payload: Array[Byte], limitMs: Int): Outcome[Array[Byte]] =
    running.fold[Outcome[Array[Byte]]](TransferSidecar.none)(_.echo(payload, limitMs))

  private def keep(): Unit = {
    var failures = 0
    try while (!closed) {
        val startedNs = System.nanoTime()
        try {
          val process = TransferProcess.start(command, settings, source, clock, memories)
          running = Some(process)
          try {
            introduce(Some(process.introduction))
            log.info(s"Penstock: a sidecar runs beside this executor: ${process.introduction.inWords}")
            process.awaitEnd()
          } finally {
            running = None
            process.close()
            if (!closed) introduce(None)
          }
          if (System.nanoTime() - startedNs > TransferSidecar.GoodNs) failures = 0
          failures += 1
        } catch {
          case NonFatal(e) =>
            failures += 1
            // Logged once, and not with each attempt.
            if (!failureLogged) log.warn(
              "Penstock: this executor has no sidecar and reads shards from the checkpoint: " +
                s"${command.mkString(" ")} failed: ${e.getMessage}. $remedy"
            )
            failureLogged = true
        }
        if (!closed) Thread.sleep(pause(failures))
      }
    catch { case _: InterruptedException => () }
  }

  /** Number of threads that have not ended. The sidecar's process ends with its thread. */
  def liveThreads: Int = (if (thread.isAlive) 1 else 0) + (if (clock.isTerminated) 0 else 1)

  /** Ends the sidecar. */
  override def close(): Unit = {
    closed = true
    running.foreach(_.close())
    thread.interrupt()
    thread.join(TransferSidecar.CloseMs)
    memories.close()
    clock.shutdownNow(): Unit
  }
}

private object TransferSidecar {
  val none: Outcome[Nothing] = Outcome.Lost("this executor has no sidecar")
  private val CloseMs = 5000L

  /** A process that has run at least this long does not count as a failed start. */
  private val GoodNs = 10000000000L
}
