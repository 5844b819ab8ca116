package org.apache.spark.sql.penstock.integration.chaos

/**
 * A problem that a run has found.
 *
 * @param kind
 *   Kind of the problem, which a reduced scenario must also show
 */
final case class Finding(kind: Finding.Kind, detail: String) {
  override def toString: String = s"$kind: $detail"
}

object Finding {
  sealed abstract class Kind(override val toString: String)
  case object Hangs extends Kind("a process hangs")
  case object FailsForNoReason extends Kind("the query failed for no reason")
  case object DiesForNoReason extends Kind("the process died for no reason")
  case object OtherRows extends Kind("rows differ from plain Spark's")
  case object BadCheckpoint extends Kind("the checkpoint")
}
