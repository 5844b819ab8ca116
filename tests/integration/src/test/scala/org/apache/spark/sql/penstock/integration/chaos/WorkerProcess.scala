package org.apache.spark.sql.penstock.integration.chaos

import java.io.{BufferedReader, InputStreamReader, PrintWriter}
import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.penstock.integration.harness.{CommandLine, JavaHome, LocalCluster}

/**
 * A [[ChaosWorker]] and its executors. It starts in the background, and `play` waits until it is ready.
 *
 * @param options
 *   Options of the JVM, in addition to those of this one
 */
final class WorkerProcess(kind: WorkerKind, directory: Path, options: Seq[String] = Nil) {
  import WorkerProcess._

  private val log = Files.createDirectories(directory).resolve("log")
  private val process = {
    val java = JavaHome.program("java")
    val own = ManagementFactory.getRuntimeMXBean.getInputArguments.asScala.filterNot(_.startsWith("-Xm"))
    val command =
      Seq(java, "-Xmx2g") ++ own ++ options ++ Seq(LocalCluster.ShortLived, "-cp", ClassArchive.classPath) ++
        Seq(
          ChaosWorker.getClass.getName.stripSuffix("$"),
          kind.toString,
          directory.toString,
          CommandLine.python.toString
        )
    new ProcessBuilder(command.asJava).redirectError(log.toFile).start()
  }
  private val in = new PrintWriter(process.getOutputStream, true)
  private val lines = new LinkedBlockingQueue[String]()
  private val reader = new Thread(() => {
    val out = new BufferedReader(new InputStreamReader(process.getInputStream))
    Iterator.continually(out.readLine()).takeWhile(_ != null).filter(_.startsWith("chaos: ")).foreach(lines.put)
    lines.put(Ended)
  })
  reader.setDaemon(true)
  reader.start()
  private lazy val isReady = answer() == Finished(ChaosWorker.Ready)

  /** Plays a run until it ends, in whatever way. */
  def play(run: RunDirectory): Answer = {
    require(isReady, s"a worker did not start, see $log")
    in.println(run.root)
    answer()
  }

  def isAlive: Boolean = process.isAlive

  /** Closes the input of the process and waits for its orderly end. */
  def end(): Unit = {
    in.close()
    process.waitFor(): Unit
  }

  /** Kills the process and all its descendants. */
  def close(): Unit = {
    val all = process.descendants().iterator.asScala.toSeq :+ process.toHandle
    all.foreach(_.destroyForcibly())
    process.waitFor(): Unit
  }

  private def answer(): Answer = Option(lines.poll(LimitSeconds, TimeUnit.SECONDS)) match {
    case Some(Ended) =>
      process.waitFor()
      Died(tail)
    case Some(line) => Finished(line)
    case None =>
      val stack = threads
      close()
      Hung(stack)
  }

  private def tail: String = Files.readAllLines(log).asScala.takeRight(30).mkString("\n")

  private def threads: String = {
    val jstack = JavaHome.program("jstack")
    new String(new ProcessBuilder(jstack, process.pid.toString).start().getInputStream.readAllBytes())
  }
}

object WorkerProcess {
  private val LimitSeconds = 240L
  private val Ended = "chaos: ended"

  sealed trait Answer
  final case class Finished(line: String) extends Answer

  /** The process has ended without an answer. */
  final case class Died(log: String) extends Answer

  /** The process did not answer in time and was killed. */
  final case class Hung(threads: String) extends Answer
}
