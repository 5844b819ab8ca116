package org.apache.spark.sql.penstock.routing

import java.nio.file.{Files, Path}

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.penstock.components.{DriverComponents, ExecutorComponents}

import io.penstock.FewHadoopSettings
import io.penstock.context.{DriverContext, ExecutorContext}
import org.scalatest.{BeforeAndAfterAll, Suite}

/** A small local Spark session for a suite, with Penstock's contexts but without the plugin that starts them. */
trait LocalSpark extends BeforeAndAfterAll { this: Suite =>
  protected def master: String = "local[2]"
  protected def conf: Map[String, String] = Map.empty
  protected def extensions: Option[SparkSessionExtensions => Unit] = None
  protected var spark: SparkSession = _
  protected var scratch: Path = _

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    scratch = Files.createTempDirectory("penstock-routing")
    DriverComponents.start(None)
    ExecutorComponents.start(Map.empty, "driver")
    val builder = SparkSession.builder().master(master).appName(suiteName)
      .config("spark.ui.enabled", "false")
      .config("spark.sql.warehouse.dir", scratch.resolve("warehouse").toString)
      .config("spark.sql.shuffle.partitions", "8")
    conf.foreach { case (k, v) => builder.config(k, v) }
    extensions.foreach(builder.withExtensions(_))
    spark = builder.getOrCreate().asInstanceOf[SparkSession]
    FewHadoopSettings.in(spark.sparkContext.hadoopConfiguration)
  }

  override protected def afterAll(): Unit = {
    Seq(ExecutorContext, DriverContext).flatMap(_.find).foreach(_.shutdown())
    if (spark != null) spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    org.apache.commons.io.FileUtils.deleteDirectory(scratch.toFile)
    super.afterAll()
  }
}
