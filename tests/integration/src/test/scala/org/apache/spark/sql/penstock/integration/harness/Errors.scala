package org.apache.spark.sql.penstock.integration.harness

import scala.collection.immutable.ArraySeq

import io.penstock.errors.PenstockException

/** Finds what a failure is about below the exceptions that Spark wraps it in. */
object Errors {
  def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(30).toSeq

  /** The first line of every message. An executor's error reaches the driver as text of the job's error only. */
  def text(error: Throwable): String = causes(error).map(_.toString).mkString("\n")

  def penstock(error: Throwable): Option[PenstockException] =
    causes(error).collectFirst { case found: PenstockException => found }

  /** The texts that an error should have shown and did not. */
  def missing(error: Throwable, texts: String*): Seq[String] =
    ArraySeq.from(texts).filterNot(text(error).contains)
}
