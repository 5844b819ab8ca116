package io.penstock.sidecar

import java.io.{BufferedReader, EOFException, IOException, InputStreamReader}
import java.net.UnixDomainSocketAddress
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}
import java.security.SecureRandom
import java.util.concurrent.{ScheduledExecutorService, TimeUnit}

import scala.util.control.NonFatal

import io.penstock.conf.SparkVersions

/** A sidecar that cannot be used any more, with what to do. */
final class SidecarFailure(what: String, cause: Throwable = null) extends Exception(what, cause)

/**
 * One Python process and the connection to it. For one thread; the clock's thread ends what takes too long.
 *
 * @param clock
 *   runs the ends of time limits
 */
final class SidecarProcess private (
    process: Process,
    folder: Path,
    errors: SidecarProcess.LastWords,
    clock: ScheduledExecutorService
) extends AutoCloseable {
  private var channel: SocketChannel = _
  private var asked = 0L

  /**
   * Sends a question and waits for its answer.
   *
   * @throws SidecarFailure
   *   where there is none: the process has ended, it took too long, or it answered garbage. It is then of no use.
   */
  def ask(kind: FrameKind, head: com.fasterxml.jackson.databind.node.ObjectNode, body: Array[Byte]): SidecarFrame =
    within(SidecarProcess.AnswerMs, "answer") {
      asked += 1
      val question = ByteBuffer.wrap(SidecarFrame.encode(SidecarFrame(kind, asked, head, body)))
      while (question.hasRemaining) channel.write(question)
      val prefix = SidecarFrame.decodePrefix(read(SidecarFrame.PrefixBytes))
      val answer = SidecarFrame.decodeRest(prefix, read(prefix.headBytes + prefix.bodyBytes))
      if (answer.number != asked) throw new BrokenFrame(s"answer ${answer.number} to question $asked")
      answer
    }

  private def connect(token: String): Unit = {
    within(SidecarProcess.StartMs, "start") {
      val input = process.getOutputStream
      input.write(s"$token\n".getBytes(UTF_8))
      input.flush()
      val said = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8)).readLine()
      if (said != "ready") throw new EOFException(Option(said).getOrElse("it ended"))
      channel = SocketChannel.open(UnixDomainSocketAddress.of(folder.resolve("driver.sock")))
    }
    val head = SidecarFrame.newHead().put("token", token).put("penstock", SparkVersions.penstock)
    val welcome = ask(FrameKind.Hello, head, Array.emptyByteArray)
    if (welcome.kind != FrameKind.Welcome) throw failure(s"it answered a hello with ${welcome.kind.name}", null)
  }

  private def read(count: Int): Array[Byte] = {
    val bytes = ByteBuffer.allocate(count)
    while (bytes.hasRemaining)
      if (channel.read(bytes) < 0) throw new EOFException("it closed the connection")
    bytes.array
  }

  /** Runs what talks to the process; past the limit the process is ended, and with it the talk. */
  private def within[T](limitMs: Long, what: String)(talk: => T): T = {
    @volatile var late = false
    val end = clock.schedule(
      new Runnable {
        override def run(): Unit = {
          late = true
          process.destroyForcibly(): Unit
        }
      },
      limitMs,
      TimeUnit.MILLISECONDS
    )
    try talk
    catch {
      case e @ (_: IOException | _: BrokenFrame) =>
        throw failure(if (late) s"it did not $what within ${limitMs / 1000} s" else e.getMessage, e)
    } finally end.cancel(false): Unit
  }

  private def failure(what: String, cause: Throwable): SidecarFailure = {
    // What it said last comes with its end.
    if (cause != null) process.waitFor(SidecarProcess.EndMs, TimeUnit.MILLISECONDS)
    val words = errors.text
    new SidecarFailure(if (words.isEmpty) what else s"$what; it said: $words", cause)
  }

  /** Ends the process, and removes its folder. */
  override def close(): Unit = {
    try if (channel != null) channel.close()
    catch { case _: IOException => () }
    // The end of its input is what ends it, wherever it is.
    try process.getOutputStream.close()
    catch { case _: IOException => () }
    if (!process.waitFor(SidecarProcess.EndMs, TimeUnit.MILLISECONDS)) process.destroyForcibly().waitFor(): Unit
    SidecarProcess.remove(folder)
  }
}

object SidecarProcess {

  /** Python and its libraries are loaded, and planners compiled. */
  private val StartMs = 120000L
  private val AnswerMs = 10000L
  private val EndMs = 2000L
  private val TokenBytes = 32

  /**
   * Starts a sidecar and connects to it.
   *
   * @param command
   *   the program and its arguments before the folder
   * @throws SidecarFailure
   *   where it cannot be started
   */
  def start(command: Seq[String], clock: ScheduledExecutorService): SidecarProcess = {
    val folder = Files.createTempDirectory(
      "penstock-",
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
    )
    val process =
      try new ProcessBuilder((command :+ folder.toString): _*).start()
      catch {
        case e: IOException =>
          remove(folder)
          throw new SidecarFailure(e.getMessage, e)
      }
    val sidecar = new SidecarProcess(process, folder, new LastWords(process), clock)
    try {
      sidecar.connect(newToken())
      sidecar
    } catch {
      case NonFatal(e) =>
        sidecar.close()
        throw e
    }
  }

  private def newToken(): String = {
    val bytes = new Array[Byte](TokenBytes)
    new SecureRandom().nextBytes(bytes)
    bytes.map("%02x".format(_)).mkString
  }

  private def remove(folder: Path): Unit =
    try {
      Files.deleteIfExists(folder.resolve("driver.sock"))
      Files.deleteIfExists(folder): Unit
    } catch { case _: IOException => () }

  /** The end of what the process writes to its standard error. */
  private class LastWords(process: Process) {
    private val lines = new java.util.ArrayDeque[String]()
    private val reader = new Thread(() => follow(), "penstock-sidecar-errors")
    reader.setDaemon(true)
    reader.start()

    private def follow(): Unit = {
      val in = new BufferedReader(new InputStreamReader(process.getErrorStream, UTF_8))
      try Iterator.continually(in.readLine()).takeWhile(_ != null).foreach { line =>
          lines.synchronized {
            lines.add(line.take(LastWords.MostChars))
            if (lines.size > LastWords.MostLines) lines.remove(): Unit
          }
        }
      catch { case _: IOException => () }
    }

    def text: String = {
      if (!process.isAlive) reader.join(EndMs)
      lines.synchronized(String.join(" | ", lines))
    }
  }

  private object LastWords {
    val MostLines = 3
    val MostChars = 300
  }
}
