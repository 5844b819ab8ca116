package io.penstock.sidecars.planner

import java.io.{EOFException, IOException}
import java.net.UnixDomainSocketAddress
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.util.concurrent.ScheduledExecutorService

import io.penstock.conf.SparkVersions
import io.penstock.process.PythonProcess

/** The planner sidecar and the connection to it. Used by one thread; the clock's thread enforces time limits. */
final class PlannerProcess private (python: PythonProcess) extends AutoCloseable {
  private var channel: SocketChannel = _
  private var asked = 0L

  /** Number of the next question. */
  def next: Long = asked + 1

  /**
   * Sends a question and waits for its answer.
   *
   * @param question
   *   a frame with the number `next`
   * @throws SidecarFailure
   *   if the process has ended, took too long, or sent an invalid answer. The process cannot be used any more.
   */
  def ask(question: Array[Byte]): PlannerFrame =
    python.within(PlannerProcess.AnswerMs, "answer") {
      asked += 1
      val out = ByteBuffer.wrap(question)
      while (out.hasRemaining) channel.write(out)
      val prefix = PlannerFrame.decodePrefix(read(PlannerFrame.PrefixBytes))
      val answer = PlannerFrame.decodeRest(prefix, read(prefix.headBytes + prefix.bodyBytes))
      if (answer.number != asked) throw new BrokenFrame(s"answer ${answer.number} to question $asked")
      answer
    }

  private def connect(token: String): Unit = {
    python.within(PlannerProcess.StartMs, "start") {
      python.tell(token)
      python.hear("ready"): Unit
      channel = SocketChannel.open(UnixDomainSocketAddress.of(python.folder.resolve("driver.sock")))
    }
    val head = PlannerFrame.newHead().put("token", token).put("penstock", SparkVersions.penstock)
    val welcome = ask(PlannerFrame.encode(PlannerFrame(FrameKind.Hello, next, head, Array.emptyByteArray)))
    if (welcome.kind != FrameKind.Welcome) throw python.failure(s"it answered a hello with ${welcome.kind.name}", null)
  }

  private def read(count: Int): Array[Byte] = {
    val bytes = ByteBuffer.allocate(count)
    while (bytes.hasRemaining)
      if (channel.read(bytes) < 0) throw new EOFException("it closed the connection")
    bytes.array
  }

  /** Ends the process. */
  override def close(): Unit = {
    try if (channel != null) channel.close()
    catch { case _: IOException => () }
    python.close()
  }
}

object PlannerProcess {

  /** Starting includes loading Python and its libraries and compiling the planners. */
  private val StartMs = 120000L
  private val AnswerMs = 10000L

  /**
   * Starts a sidecar and connects to it.
   *
   * @param command
   *   the program and its arguments; the folder is appended as the last argument
   * @throws SidecarFailure
   *   if the sidecar cannot be started
   */
  def start(command: Seq[String], clock: ScheduledExecutorService): PlannerProcess = {
    val sidecar = new PlannerProcess(PythonProcess.start(command, clock))
    try {
      sidecar.connect(PythonProcess.newToken())
      sidecar
    } catch {
      // Also an interruption, when the application ends during the start.
      case e: Throwable =>
        sidecar.close()
        throw e
    }
  }
}
