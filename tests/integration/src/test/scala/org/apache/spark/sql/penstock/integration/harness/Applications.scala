package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.Path

import org.apache.spark.sql.{SparkSession, classic}

import io.penstock.FewHadoopSettings

/** Starts Spark applications for tests. A JVM has at most one at a time. */
object Applications {
  val Plugin: Map[String, String] = Map("spark.plugins" -> "io.penstock.PenstockPlugin")

  /** A file manager that starts no child processes, because they take most of a small batch's time. */
  val FastFiles: Map[String, String] =
    Map("spark.sql.streaming.checkpointFileManagerClass" -> "io.penstock.LocalCheckpointFileManager")

  /**
   * Starts an application.
   *
   * @param warehouse
   *   Directory of Spark's tables
   * @param conf
   *   All settings that matter to a test, including the plugin's
   */
  def start(name: String, master: String, warehouse: Path, conf: Map[String, String]): classic.SparkSession = {
    val builder = SparkSession
      .builder()
      .master(master)
      .appName(name)
      .config("spark.ui.enabled", "false")
      .config("spark.driver.host", "127.0.0.1")
      .config("spark.driver.bindAddress", "127.0.0.1")
      .config("spark.sql.session.timeZone", "UTC")
      .config("spark.sql.warehouse.dir", warehouse.toString)
      .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
    conf.foreach { case (key, value) => builder.config(key, value) }
    val session = builder.getOrCreate().asInstanceOf[classic.SparkSession]
    // Expected failures would fill the log.
    session.sparkContext.setLogLevel("OFF")
    FewHadoopSettings.in(session.sparkContext.hadoopConfiguration)
    session
  }
}
