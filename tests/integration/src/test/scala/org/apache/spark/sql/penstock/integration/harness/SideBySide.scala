package org.apache.spark.sql.penstock.integration.harness

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration.Duration
import scala.concurrent.{Await, Future}

/** Two queries at the same time: one leaves a core idle for half of it. */
object SideBySide {

  /** What both give, when both have ended. */
  def apply[A, B](one: => A, other: => B): (A, B) = {
    val beside = Future(one)
    val found =
      try other
      finally Await.ready(beside, Duration.Inf)
    (Await.result(beside, Duration.Inf), found)
  }
}
