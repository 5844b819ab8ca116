package org.apache.spark.sql.penstock.integration.chaos

import java.io.File
import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.penstock.integration.harness.JavaHome

/**
 * The classes of libraries as a JVM keeps them for itself (class data sharing). Processes are started by the hundred, and
 * most of what a start takes is loading the same classes.
 */
final class ClassArchive(directory: Path) {
  import ClassArchive._

  private val list = directory.resolve("classes.list")
  private val archive = directory.resolve("classes.jsa")

  /** JVM options of a process that uses the archive; none while there is none. */
  def options: Seq[String] = if (Files.exists(archive)) Seq(s"$Flag$archive") else Nil

  /**
   * Makes the archive. A JVM that cannot use it, for whatever reason, goes on without.
   *
   * @param train
   *   runs a process with these options that does what is typical, and ends it in an orderly way
   */
  def make(train: Seq[String] => Unit): Unit = {
    train(Seq("-Xshare:off", s"-XX:DumpLoadedClassList=$list"))
    val options = Seq("-Xshare:dump", "-XX:+UseParallelGC", s"-XX:SharedClassListFile=$list", s"$Flag$archive")
    val java = JavaHome.program("java")
    val command = Seq(java) ++ options ++ Seq("-cp", jars.mkString(File.pathSeparator))
    val log = directory.resolve("classes.log").toFile
    new ProcessBuilder(command.asJava).redirectErrorStream(true).redirectOutput(log).start().waitFor(): Unit
  }
}

object ClassArchive {
  private val Flag = "-XX:SharedArchiveFile="
  private val (jars, folders) =
    sys.props("java.class.path").split(File.pathSeparator).toSeq.partition(_.endsWith(".jar"))

  /** The class path of processes that may use an archive: it has jars only, which must come first. */
  val classPath: String = (jars ++ folders).mkString(File.pathSeparator)

  /** What this process was told of an archive, for those that it starts. */
  def inherited: Seq[String] =
    ManagementFactory.getRuntimeMXBean.getInputArguments.asScala.filter(_.startsWith(Flag)).toSeq
}
