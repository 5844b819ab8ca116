package io.penstock.errors

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * What is known of an error class.
 *
 * @param group
 *   section of the troubleshooting page
 * @param cause
 *   what happened and why, for the user who sees the error
 * @param remedy
 *   what to do, the likeliest first
 * @param sqlState
 *   SQLSTATE of an error that a user can correct. Spark uses the same for similar errors.
 */
final private[penstock] case class ErrorCondition(
    group: String,
    cause: String,
    remedy: String,
    sqlState: Option[String]
)

/** The registry of error classes, `error-conditions.json`. The troubleshooting page is generated from it. */
private[penstock] object ErrorConditions {
  private val Resource = "/io/penstock/error-conditions.json"

  /** By error class, in ascending order. */
  lazy val all: Seq[(String, ErrorCondition)] = {
    val in = getClass.getResourceAsStream(Resource)
    val root =
      try new ObjectMapper().readTree(in)
      finally in.close()
    root.fieldNames.asScala.map(name => name -> condition(root.get(name))).toSeq.sortBy(_._1)
  }

  private lazy val sqlStates: Map[String, String] =
    all.flatMap { case (errorClass, condition) => condition.sqlState.map(errorClass -> _) }.toMap

  /** SQLSTATE of an error that a user can correct; None for other errors. */
  def sqlState(errorClass: String): Option[String] = sqlStates.get(errorClass)

  private def condition(node: JsonNode): ErrorCondition = {
    def text(name: String) = Option(node.get(name)).map(_.asText)
    ErrorCondition(text("group").get, text("cause").get, text("remedy").get, text("sqlState"))
  }
}
