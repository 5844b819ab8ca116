package io.penstock.sidecars.planner

import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{Executors, LinkedBlockingQueue}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.process.{BackOff, DaemonThreads}
import org.slf4j.LoggerFactory

/**
 * Keeps the planner sidecar running: starts it with the first question, and again after failures, with a growing pause.
 * Questions are asked one at a time on a separate thread, so callers never wait.
 *
 * @param command
 *   the program and its arguments; the folder is appended as the last argument
 * @param remedy
 *   what a user can do if the sidecar does not start
 * @param pause
 *   returns the pause in ms after a number of failures in a row
 */
final class PlannerSidecar(command: Seq[String], remedy: String, pause: Int => Long = BackOff.pauseMs)
    extends AutoCloseable {
  private case class Question(
      kind: FrameKind,
      head: () => ObjectNode,
      body: () => Array[Byte],
      answer: Either[String, PlannerFrame] => Unit
  )

  private val log = LoggerFactory.getLogger(getClass)
  private val questions = new LinkedBlockingQueue[Question](PlannerSidecar.MaxWaiting)
  private val clock = Executors.newSingleThreadScheduledExecutor(DaemonThreads.named("penstock-planner-clock"))
  @volatile private var closed = false

  // The following fields are used by the sidecar's thread only.
  private var process: Option[PlannerProcess] = None
  private var failures = 0
  private var restAtNs = System.nanoTime()
  private var lastFailure = ""
  private var logged = Set.empty[String]

  private val thread = DaemonThreads.named("penstock-planner").newThread(() => run())
  private val started = new AtomicBoolean

  /**
   * Asks a question. Its head and body are created on the sidecar's thread.
   *
   * @param answer
   *   called on another thread with the answer, or with the reason why there is none
   */
  def ask(kind: FrameKind, head: => ObjectNode, body: => Array[Byte])(
      answer: Either[String, PlannerFrame] => Unit
  ): Unit = {
    if (started.compareAndSet(false, true)) thread.start()
    if (!questions.offer(Question(kind, () => head, () => body, answer))) answer(Left(PlannerSidecar.Late))
  }

  private def run(): Unit = {
    try while (!closed) serve(questions.take())
    catch { case _: InterruptedException => () }
    process.foreach(_.close())
    process = None
  }

  private def serve(question: Question): Unit = {
    val answer =
      if (failures > 0 && System.nanoTime() < restAtNs) Left(lastFailure)
      else
        try {
          val running = process.getOrElse(PlannerProcess.start(command, clock))
          process = Some(running)
          bytesOf(question, running.next).map { bytes =>
            val answer = running.ask(bytes)
            failures = 0
            logRefusal(answer)
            answer
          }
        } catch {
          case e: InterruptedException => throw e
          // No error may end this thread, because it has to serve later questions.
          case e: Throwable => Left(failed(e))
        }
    try question.answer(answer)
    catch { case NonFatal(e) => log.warn("Penstock: an answer of the planner could not be processed", e) }
  }

  /** The question's frame, or the reason why it cannot be created. The sidecar is not affected by such a failure. */
  private def bytesOf(question: Question, number: Long): Either[String, Array[Byte]] =
    try Right(PlannerFrame.encode(PlannerFrame(question.kind, number, question.head(), question.body())))
    catch {
      case NonFatal(e) =>
        once(e.toString)(log.warn("Penstock: the planner could not be asked. Batches continue without a new plan", e))
        Left(s"the planner was not asked: $e")
    }

  /** Logs the traceback of an error in the sidecar. The caller gets a short reason only. */
  private def logRefusal(answer: PlannerFrame): Unit =
    Option(answer.head.get("traceback")).filter(_ => answer.kind == FrameKind.Refused).map(_.asText).foreach { trace =>
      once(trace)(log.warn(s"Penstock: the planner failed to answer a question; it still answers others:\n$trace"))
    }

  /** Logs a message once, and not with every batch. */
  private def once(message: String)(write: => Unit): Unit =
    if (!closed && !logged(message) && logged.size < PlannerSidecar.MaxLogged) {
      logged += message
      write
    }

  private def failed(e: Throwable): String = {
    process.foreach(_.close())
    process = None
    failures += 1
    restAtNs = System.nanoTime() + pause(failures) * 1000000L
    lastFailure = s"no planner: ${command.mkString(" ")} failed: ${e.getMessage}. $remedy"
    once(lastFailure)(log.warn(s"Penstock: $lastFailure. Batches continue without a new plan"))
    lastFailure
  }

  /** Number of threads that have not ended. The sidecar's process ends with its thread. */
  def liveThreads: Int = (if (thread.isAlive) 1 else 0) + (if (clock.isTerminated) 0 else 1)

  /** Ends the sidecar. */
  override def close(): Unit = {
    closed = true
    thread.interrupt()
    thread.join(PlannerSidecar.CloseMs)
    clock.shutdownNow(): Unit
  }
}

object PlannerSidecar {

  /** Reason for a missing answer when too many questions are waiting. */
  val Late = "planner late"

  private val MaxWaiting = 64
  private val MaxLogged = 16
  private val CloseMs = 5000L
}
