package org.apache.spark.sql.penstock.integration.harness

import scala.annotation.nowarn

import org.apache.spark.sql.streaming.Trigger

object Triggers {

  /** Deprecated by Spark, but existing queries still use it. */
  @nowarn("cat=deprecation")
  def once: Trigger = Trigger.Once()
}
