package org.apache.spark.sql.penstock.integration.chaos

import java.io.File
import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.penstock.integration.harness.JavaHome

/**
 * An archive of library classes for class data sharing of JVMs. The tests start hundreds of processes, and most of a
 * start is spent on loading the same classes.
 */
final class ClassArchive(directory: Path) {
  import ClassArchive._

  private val list = directory.resolve("classes.list")
  private val archive = directory.resolve("classes.jsa")

  /** JVM options of a process that uses the archive. Empty until the archive exists. */
  def options: Seq[String] = if (Files.exists(archive)) Seq(s"$Flag$archive") else Nil

  /**
   * Creates the archive. A JVM that cannot use it continues without.
   *
   * @param train
   *   Function that runs a typical process with the given JVM options and ends it in an orderly way
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

  /** The class path of processes that may use an archive: the jars, which are in the archive, must come first. */
  val classPath: String = (jars ++ folders).mkString(File.pathSeparator)

  /** Options of this process for an archive, to be passed to the processes that it starts. */
  def inherited: Seq[String] =
    ManagementFactory.getRuntimeMXBean.getInputArguments.asScala.filter(_.startsWith(Flag)).toSeq
}
