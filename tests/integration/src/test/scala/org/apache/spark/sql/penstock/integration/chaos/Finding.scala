package org.apache.spark.sql.penstock.integration.chaos

/**
 * What is wrong with a run.
 *
 * @param kind
 *   a smaller scenario must go wrong in the same way
 */
final case class Finding(kind: Finding.Kind, what: String) {
  override def toString: String = s"$kind: $what"
}

object Finding {
  sealed abstract class Kind(override val toString: String)
  case object Hangs extends Kind("a process hangs")
  case object FailsForNoReason extends Kind("the query failed for no reason")
  case object DiesForNoReason extends Kind("the process died for no reason")
  case object OtherRows extends Kind("rows differ from plain Spark's")
  case object BadCheckpoint extends Kind("the checkpoint")
}
