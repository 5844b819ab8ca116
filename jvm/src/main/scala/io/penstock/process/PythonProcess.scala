package io.penstock.process

import java.io.{BufferedReader, EOFException, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}
import java.security.SecureRandom
import java.util.concurrent.{ScheduledExecutorService, TimeUnit}

/**
 * A Python process that ends with this one: by the end of its standard input, however this one ends. It has a folder of its
 * own, which nobody else may enter, and what it writes to standard error is remembered for what is said of its failure.
 *
 * @param clock
 *   runs the ends of time limits
 */
final class PythonProcess private (val process: Process, val folder: Path, clock: ScheduledExecutorService)
    extends AutoCloseable {
  private val errors = new PythonProcess.LastWords(process)
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
   * @throws java.io.EOFException
   *   where it has ended, or says something that does not begin like this
   */
  def hear(beginning: String): String = {
    val said = output.readLine()
    if (said == null || !said.startsWith(beginning)) throw new EOFException(Option(said).getOrElse("it ended"))
    said.substring(beginning.length)
  }

  /**
   * Runs what talks to the process; past the limit the process is ended, and with it the talk.
   *
   * @throws SidecarFailure
   *   where the talk failed: the process is then of no use
   */
  def within[T](limitMs: Long, what: String)(talk: => T): T = {
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
      case e: IOException =>
        throw failure(if (late) s"it did not $what within ${limitMs / 1000} s" else e.getMessage, e)
    } finally end.cancel(false): Unit
  }

  /** A failure, with what the process said last. */
  def failure(what: String, cause: Throwable): SidecarFailure = {
    // What it said last comes with its end.
    if (cause != null) process.waitFor(PythonProcess.EndMs, TimeUnit.MILLISECONDS)
    val words = errors.text
    new SidecarFailure(if (words.isEmpty) what else s"$what; it said: $words", cause)
  }

  /** Ends the process, and removes its folder with all that is in it. */
  override def close(): Unit = {
    // The end of its input is what ends it, wherever it is.
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

  /** The name of a Unix socket has 107 bytes, of which a folder's random number and a socket's own name take 45. */
  private val MaxParentChars = 60

  /**
   * Starts a process, without the secrets that Spark gives its own by the environment.
   *
   * @param command
   *   the program and its arguments before the folder
   * @throws SidecarFailure
   *   where it cannot be started
   */
  def start(command: Seq[String], clock: ScheduledExecutorService): PythonProcess = {
    val folder =
      try newFolder()
      catch { case e: IOException => throw new SidecarFailure(s"there is no folder for temporary files: $e", e) }
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

  /** A folder that nobody else may enter, whose name is short enough for that of a socket in it. */
  private def newFolder(): Path = {
    val usual = Path.of(System.getProperty("java.io.tmpdir"))
    val parent = if (usual.toString.length <= MaxParentChars) usual else Path.of("/tmp")
    Files.createTempDirectory(
      parent,
      "penstock-",
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
    )
  }

  /** 64 hexadecimal digits that nobody else knows. */
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
            lines.add(line.take(LastWords.MaxChars))
            if (lines.size > LastWords.MaxLines) lines.remove(): Unit
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
    val MaxLines = 3
    val MaxChars = 300
  }
}
