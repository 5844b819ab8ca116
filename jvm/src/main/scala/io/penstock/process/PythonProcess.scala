package io.penstock.process

import java.io.{BufferedReader, EOFException, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}
import java.security.SecureRandom
import java.util.concurrent.{ScheduledExecutorService, TimeUnit}

/**
 * A Python process that ends with this JVM: its standard input is closed then, however the JVM ends. It has a folder
 * that only this user may enter. The last lines of its standard error are kept for failure messages.
 *
 * @param clock
 *   executor that ends the process when a time limit has passed
 */
final class PythonProcess private (val process: Process, val folder: Path, clock: ScheduledExecutorService)
    extends AutoCloseable {
  private val errors = new PythonProcess.ErrorOutput(process)
  private val output = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))

  /** Writes a line to its standard input. */
  def tell(line: String): Unit = {
    val input = process.getOutputStream
    input.write(s"$line\n".getBytes(UTF_8))
    input.flush()
  }

  /**
   * Reads a line of its standard output.
   *
   * @param beginning
   *   expected beginning of the line
   * @return
   *   the rest of the line
   * @throws java.io.EOFException
   *   if the output has ended, or the line does not begin as expected
   */
  def hear(beginning: String): String = {
    val line = output.readLine()
    if (line == null || !line.startsWith(beginning)) throw new EOFException(Option(line).getOrElse("it ended"))
    line.substring(beginning.length)
  }

  /**
   * Runs a conversation with the process. After the time limit the process is ended, which ends the conversation.
   *
   * @param action
   *   what the process has to do, a verb for the failure message such as "answer"
   * @throws SidecarFailure
   *   if the conversation fails; the process cannot be used any more
   */
  def within[T](limitMs: Long, action: String)(talk: => T): T = {
    @volatile var timedOut = false
    val end = clock.schedule(
      new Runnable {
        override def run(): Unit = {
          timedOut = true
          process.destroyForcibly(): Unit
        }
      },
      limitMs,
      TimeUnit.MILLISECONDS
    )
    try talk
    catch {
      case e: IOException =>
        throw failure(if (timedOut) s"it did not $action within ${limitMs / 1000} s" else e.getMessage, e)
    } finally end.cancel(false): Unit
  }

  /** A failure with the last lines that the process wrote to its standard error. */
  def failure(message: String, cause: Throwable): SidecarFailure = {
    // A failing process writes its last lines just before it ends.
    if (cause != null) process.waitFor(PythonProcess.EndMs, TimeUnit.MILLISECONDS)
    val lastLines = errors.text
    new SidecarFailure(if (lastLines.isEmpty) message else s"$message; it said: $lastLines", cause)
  }

  /** Ends the process and removes its folder with all files in it. */
  override def close(): Unit = {
    // The process ends when its standard input is closed.
    try process.getOutputStream.close()
    catch { case _: IOException => () }
    if (!process.waitFor(PythonProcess.EndMs, TimeUnit.MILLISECONDS)) process.destroyForcibly().waitFor(): Unit
    PythonProcess.remove(folder)
  }
}

object PythonProcess {
  private val EndMs = 2000L
  private val TokenBytes = 32
  private val Secrets = Seq("_SPARK_AUTH_SECRET")

  /**
   * A Unix socket's path has at most 107 bytes; the folder's random name and the socket's file name take 45 of them.
   */
  private val MaxParentChars = 60

  /**
   * Starts a process. Secrets that Spark passes in environment variables are removed from its environment.
   *
   * @param command
   *   the program and its arguments; the folder is appended as the last argument
   * @throws SidecarFailure
   *   if the process cannot be started
   */
  def start(command: Seq[String], clock: ScheduledExecutorService): PythonProcess = {
    val folder =
      try newFolder()
      catch { case e: IOException => throw new SidecarFailure(s"a temporary folder could not be created: $e", e) }
    try {
      val builder = new ProcessBuilder((command :+ folder.toString): _*)
      Secrets.foreach(builder.environment.remove(_))
      new PythonProcess(builder.start(), folder, clock)
    } catch {
      case e: IOException =>
        remove(folder)
        throw new SidecarFailure(e.getMessage, e)
    }
  }

  /** Creates a folder that only this user may enter and whose path is short enough for a socket in it. */
  private def newFolder(): Path = {
    val usual = Path.of(System.getProperty("java.io.tmpdir"))
    val parent = if (usual.toString.length <= MaxParentChars) usual else Path.of("/tmp")
    Files.createTempDirectory(
      parent,
      "penstock-",
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
    )
  }

  /** A random secret of 64 hexadecimal digits. */
  def newToken(): String = {
    val bytes = new Array[Byte](TokenBytes)
    new SecureRandom().nextBytes(bytes)
    bytes.map("%02x".format(_)).mkString
  }

  private def remove(folder: Path): Unit =
    try {
      Option(folder.toFile.listFiles).toSeq.flatten.foreach(file => Files.deleteIfExists(file.toPath))
      Files.deleteIfExists(folder): Unit
    } catch { case _: IOException => () }

  /** Reads the standard error of a process and keeps its last lines. */
  private class ErrorOutput(process: Process) {
    private val lines = new java.util.ArrayDeque[String]()
    private val reader = DaemonThreads.named("penstock-sidecar-errors").newThread(() => follow())
    reader.start()

    private def follow(): Unit = {
      val in = new BufferedReader(new InputStreamReader(process.getErrorStream, UTF_8))
      try Iterator.continually(in.readLine()).takeWhile(_ != null).foreach { line =>
          lines.synchronized {
            lines.add(line.take(ErrorOutput.MaxChars))
            if (lines.size > ErrorOutput.MaxLines) lines.remove(): Unit
          }
        }
      catch { case _: IOException => () }
    }

    def text: String = {
      if (!process.isAlive) reader.join(EndMs)
      lines.synchronized(String.join(" | ", lines))
    }
  }

  private object ErrorOutput {
    val MaxLines = 3
    val MaxChars = 300
  }
}
