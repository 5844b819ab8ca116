package org.apache.spark.sql.penstock.integration.harness

import scala.collection.immutable.ArraySeq

import io.penstock.errors.PenstockException

/** Finds the cause of a failure below the exceptions in which Spark wraps it. */
object Errors {
  def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(30).toSeq

  /** The first line of every message. An executor's error reaches the driver only as text of the job's error. */
  def text(error: Throwable): String = causes(error).map(_.toString).mkString("\n")

  def penstock(error: Throwable): Option[PenstockException] =
    causes(error).collectFirst { case found: PenstockException => found }

  /** The texts that an error should contain but does not. */
  def missing(error: Throwable, texts: String*): Seq[String] =
    ArraySeq.from(texts).filterNot(text(error).contains)
}
