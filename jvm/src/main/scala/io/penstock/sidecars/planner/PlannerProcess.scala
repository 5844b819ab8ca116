package io.penstock.sidecars.planner

import java.io.{EOFException, IOException}
import java.net.UnixDomainSocketAddress
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.util.concurrent.ScheduledExecutorService

import scala.util.control.NonFatal

import io.penstock.conf.SparkVersions
import io.penstock.process.PythonProcess

/** The driver's sidecar and the connection to it. For one thread; the clock's thread ends what takes too long. */
final class PlannerProcess private (python: PythonProcess) extends AutoCloseable {
  private var channel: SocketChannel = _
  private var asked = 0L

  /** Number of the question that is asked next. */
  def next: Long = asked + 1

  /**
   * Sends a question and waits for its answer.
   *
   * @param question
   *   a frame with the number `next`
   * @throws SidecarFailure
   *   where there is none: the process has ended, it took too long, or it answered garbage. It is then of no use.
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

  /** Python and its libraries are loaded, and planners compiled. */
  private val StartMs = 120000L
  private val AnswerMs = 10000L

  /**
   * Starts a sidecar and connects to it.
   *
   * @param command
   *   the program and its arguments before the folder
   * @throws SidecarFailure
   *   where it cannot be started
   */
  def start(command: Seq[String], clock: ScheduledExecutorService): PlannerProcess = {
    val sidecar = new PlannerProcess(PythonProcess.start(command, clock))
    try {
      sidecar.connect(PythonProcess.newToken())
      sidecar
    } catch {
      case NonFatal(e) =>
        sidecar.close()
        throw e
    }
  }
}
