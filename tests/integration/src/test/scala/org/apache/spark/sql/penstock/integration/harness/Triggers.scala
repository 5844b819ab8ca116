package org.apache.spark.sql.penstock.integration.harness

import scala.annotation.nowarn

import org.apache.spark.sql.streaming.Trigger

object Triggers {

  /** Deprecated by Spark, and still what running queries use. */
  @nowarn("cat=deprecation")
  def once: Trigger = Trigger.Once()
}
