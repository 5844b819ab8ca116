package io.penstock.conf

/**
 * How near to a query a value may be set. A wider scope is always allowed as well: what a query may set, a session and
 * an application may set for all their queries.
 */
sealed abstract class Scope(val name: String, val location: String) {

  /** Whether a setting of this scope may be set at `other`. */
  def admits(other: Scope): Boolean = Scope.all.indexOf(other) <= Scope.all.indexOf(this)

  override def toString: String = name
}

object Scope {

  /** Spark's configuration when the application starts: `--conf`, `spark-defaults.conf`, the first session's builder. */
  case object Application extends Scope("application", "the application's configuration")

  /** `spark.conf.set`, for queries that the session starts afterwards. */
  case object Session extends Scope("session", "the session's configuration")

  /** `writeStream.option`, for one query. */
  case object Query extends Scope("query", "the query's options")

  /** Widest first. */
  val all: Seq[Scope] = Seq(Application, Session, Query)
}

/**
 * When a new value of a setting is used.
 *
 * @param changeableAtRunTime
 *   whether it can be set for a query that runs
 */
sealed abstract class Effect(val name: String, val changeableAtRunTime: Boolean)

object Effect {

  /** Read once, when the application starts. */
  case object ApplicationStart extends Effect("application start", false)

  /** Fixed by the first batch of a checkpoint: a query keeps it for life. */
  case object NewCheckpoint extends Effect("new checkpoint", false)

  /** Read when a query starts, and may be set for a query that runs: its next batch uses it. */
  case object NextBatch extends Effect("next batch", true)

  /** Read when a query starts, so a restart of the query, with the same checkpoint, changes it. */
  case object QueryStart extends Effect("query start", false)
}
