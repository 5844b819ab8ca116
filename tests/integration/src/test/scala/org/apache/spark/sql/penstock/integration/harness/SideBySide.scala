package org.apache.spark.sql.penstock.integration.harness

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration.Duration
import scala.concurrent.{Await, Future}

/** Runs two queries at the same time, because a single one leaves a core idle half of the time. */
object SideBySide {

  /** Returns both results when both have ended. */
  def apply[A, B](one: => A, other: => B): (A, B) = {
    val beside = Future(one)
    val found =
      try other
      finally Await.ready(beside, Duration.Inf)
    (Await.result(beside, Duration.Inf), found)
  }
}
