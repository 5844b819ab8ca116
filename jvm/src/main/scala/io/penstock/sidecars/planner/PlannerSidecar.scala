package io.penstock.sidecars.planner

import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{Executors, LinkedBlockingQueue}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.process.{BackOff, DaemonThreads}
import org.slf4j.LoggerFactory

/**
 * Keeps a sidecar running: starts it with the first question, starts it again after it failed, later each time. Questions
 * are asked one after the other on a thread of their own; who asks never waits.
 *
 * @param command
 *   the program and its arguments before the folder
 * @param remedy
 *   what a user can do where the sidecar does not start
 * @param pause
 *   how long to wait after so many failures in a row, in ms
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

  // Of the thread alone.
  private var process: Option[PlannerProcess] = None
  private var failures = 0
  private var restAtNs = System.nanoTime()
  private var trouble = ""
  private var told = Set.empty[String]

  private val thread = DaemonThreads.named("penstock-planner").newThread(() => run())
  private val started = new AtomicBoolean

  /**
   * Asks a question, whose parts are made on the sidecar's thread.
   *
   * @param answer
   *   gets the answer, or why there is none, on another thread
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
      if (failures > 0 && System.nanoTime() < restAtNs) Left(trouble)
      else
        try {
          val running = process.getOrElse(PlannerProcess.start(command, clock))
          process = Some(running)
          bytesOf(question, running.next).map { bytes =>
            val answer = running.ask(bytes)
            failures = 0
            tellError(answer)
            answer
          }
        } catch {
          case e: InterruptedException => throw e
          // Whatever it is, who asks next shall find this thread.
          case e: Throwable => Left(failed(e))
        }
    try question.answer(answer)
    catch { case NonFatal(e) => log.warn("Penstock: an answer of the planner could not be used", e) }
  }

  /** The question's frame, or why it cannot be put: the sidecar knows nothing of it, and goes on for others. */
  private def bytesOf(question: Question, number: Long): Either[String, Array[Byte]] =
    try Right(PlannerFrame.encode(PlannerFrame(question.kind, number, question.head(), question.body())))
    catch {
      case NonFatal(e) =>
        once(e.toString)(log.warn("Penstock: the planner could not be asked. Batches go on as they are", e))
        Left(s"the planner was not asked: $e")
    }

  /** An error of the sidecar's concerns who asked; what it was is for those who mend it. */
  private def tellError(answer: PlannerFrame): Unit =
    Option(answer.head.get("traceback")).filter(_ => answer.kind == FrameKind.Refused).map(_.asText).foreach { trace =>
      once(trace)(log.warn(s"Penstock: the planner failed at a question, and goes on with others:\n$trace"))
    }

  /** Once, not with each batch. */
  private def once(what: String)(tell: => Unit): Unit =
    if (!closed && !told(what) && told.size < PlannerSidecar.MaxTold) {
      told += what
      tell
    }

  private def failed(e: Throwable): String = {
    process.foreach(_.close())
    process = None
    failures += 1
    restAtNs = System.nanoTime() + pause(failures) * 1000000L
    trouble = s"no planner: ${command.mkString(" ")} failed: ${e.getMessage}. $remedy"
    once(trouble)(log.warn(s"Penstock: $trouble. Batches go on as they are"))
    trouble
  }

  /** Ends the sidecar. */
  override def close(): Unit = {
    closed = true
    thread.interrupt()
    thread.join(PlannerSidecar.CloseMs)
    clock.shutdownNow(): Unit
  }
}

object PlannerSidecar {

  /** Why there is no answer, where too many questions wait for theirs. */
  val Late = "planner late"

  private val MaxWaiting = 64
  private val MaxTold = 16
  private val CloseMs = 5000L
}
