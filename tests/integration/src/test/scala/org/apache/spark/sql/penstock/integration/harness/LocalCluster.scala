package org.apache.spark.sql.penstock.integration.harness

import java.io.File

import org.apache.spark.SparkContext

import io.penstock.Patience
import org.scalatest.Suite

/**
 * An application with two executors in separate processes.
 *
 * Spark starts executors with the jars of SPARK_HOME, which the build sets to an empty folder. Their classes come from
 * the class path of the tests.
 */
trait LocalCluster extends PenstockApplication { this: Suite =>

  override protected def master: String = LocalCluster.Master

  override protected def applicationConf: Map[String, String] = LocalCluster.conf(executorClassPath) +
    ("spark.sql.streaming.checkpointFileManagerClass" ->
      "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager")

  protected def executorClassPath: String = sys.props("java.class.path")

  /** Waits until at least `atLeast` executors are registered, and `without` is not one of them. */
  protected def awaitExecutors(context: SparkContext, atLeast: Int, without: String): Unit = Patience.eventually {
    val ids = context.getExecutorIds()
    assert(ids.size >= atLeast && !ids.contains(without), "no new executor")
  }
}

object LocalCluster {

  /** For JVMs that live for seconds, which do not profit from better compiled code. */
  val ShortLived = "-XX:TieredStopAtLevel=1"

  val Master = "local-cluster[2,1,1024]"

  /** Executors have two cores each, so that a task may run on both executors at the same time. */
  val MasterOfTwoCores = "local-cluster[2,2,1024]"

  /** Tasks run twice as soon as one of their stage has ended, without waiting for locality. */
  val Speculating: Map[String, String] = Map(
    "spark.speculation" -> "true",
    "spark.speculation.interval" -> "20ms",
    "spark.speculation.quantile" -> "0.1",
    "spark.speculation.multiplier" -> "1.1",
    "spark.speculation.minTaskRuntime" -> "50ms",
    "spark.speculation.efficiency.enabled" -> "false",
    "spark.locality.wait" -> "0"
  )

  /** Settings for two small executors. */
  def conf(classPath: String, options: Seq[String] = Nil): Map[String, String] =
    Map(
      "spark.executor.extraClassPath" -> classPath,
      "spark.executor.memory" -> "640m",
      "spark.penstock.python" -> CommandLine.python.toString,
      "spark.executor.extraJavaOptions" -> (ShortLived +: options).mkString(" ")
    )

  /** The part of a class path with Spark but without Penstock and its tests. */
  def withoutPenstock(classPath: String): String =
    classPath.split(File.pathSeparator).filter(_.endsWith(".jar")).filterNot(_.contains("penstock"))
      .mkString(File.pathSeparator)
}
