package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.classic

import org.scalatest.{BeforeAndAfterEach, Suite}

/** Base of suites that need different Spark applications, one after the other. */
trait OneApplicationAtATime extends BeforeAndAfterEach with TestDirectory { this: Suite =>
  private var running: Option[classic.SparkSession] = None

  override protected def afterEach(): Unit =
    try stop()
    finally super.afterEach()

  /** Stops the running application, if there is one. */
  protected def stop(): Unit = {
    running.foreach(_.stop())
    running = None
  }

  /**
   * Stops the running application and starts another one.
   *
   * @param attempts
   *   Number of attempts of a task
   */
  protected def application(conf: Map[String, String], attempts: Int = 4, cores: Int = 2): classic.SparkSession = {
    stop()
    val all = Applications.FastFiles ++ conf
    val session = Applications.start(suiteName, s"local[$cores,$attempts]", newDirectory("warehouse"), all)
    running = Some(session)
    session
  }
}
