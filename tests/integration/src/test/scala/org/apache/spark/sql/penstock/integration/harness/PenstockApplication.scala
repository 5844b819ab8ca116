package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.{SparkSession, classic}

import org.scalatest.{BeforeAndAfterAll, Suite}

/** One Spark application with the plugin on, shared by the tests of a suite. */
trait PenstockApplication extends BeforeAndAfterAll with TestDirectory { this: Suite =>

  protected def master: String = "local[2,4]"

  /** Settings of the application besides the plugin. */
  protected def applicationConf: Map[String, String] = Map.empty

  protected lazy val application: classic.SparkSession = {
    val builder = SparkSession
      .builder()
      .master(master)
      .appName(getClass.getSimpleName)
      .config("spark.plugins", "io.penstock.PenstockPlugin")
      .config("spark.ui.enabled", "false")
      .config("spark.driver.host", "127.0.0.1")
      .config("spark.driver.bindAddress", "127.0.0.1")
      .config("spark.sql.session.timeZone", "UTC")
      .config("spark.sql.warehouse.dir", newDirectory("warehouse").toString)
      .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
      .config("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")
    applicationConf.foreach { case (key, value) => builder.config(key, value) }
    val session = builder.getOrCreate().asInstanceOf[classic.SparkSession]
    session.sparkContext.setLogLevel("OFF")
    session
  }

  override protected def afterAll(): Unit =
    try application.stop()
    finally super.afterAll()
}
