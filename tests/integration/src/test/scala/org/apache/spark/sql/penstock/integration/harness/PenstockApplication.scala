package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.classic

import org.scalatest.{BeforeAndAfterAll, Suite}

/** One Spark application with the plugin on, shared by the tests of a suite. */
trait PenstockApplication extends BeforeAndAfterAll with TestDirectory { this: Suite =>

  protected def master: String = "local[2,4]"

  /** Settings of the application in addition to the plugin's. */
  protected def applicationConf: Map[String, String] = Applications.FastFiles

  protected lazy val application: classic.SparkSession = Applications.start(
    getClass.getSimpleName,
    master,
    newDirectory("warehouse"),
    Applications.Plugin ++ applicationConf
  )

  override protected def afterAll(): Unit =
    try application.stop()
    finally super.afterAll()
}
