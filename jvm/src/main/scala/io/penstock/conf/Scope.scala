package io.penstock.conf

/**
 * The narrowest place in which a setting may be set. Wider scopes are allowed as well: a setting of a query may also be
 * set in the session or the application, for all their queries.
 */
sealed abstract class Scope(val name: String, val location: String) {

  /** Whether a setting of this scope may be set at `other`. */
  def admits(other: Scope): Boolean = Scope.all.indexOf(other) <= Scope.all.indexOf(this)

  override def toString: String = name
}

object Scope {

  /** Spark's configuration at the application's start: `--conf`, `spark-defaults.conf`, the first session's builder. */
  case object Application extends Scope("application", "the application's configuration")

  /** `spark.conf.set`, for queries that are started in the session later. */
  case object Session extends Scope("session", "the session's configuration")

  /** `writeStream.option`, for one query. */
  case object Query extends Scope("query", "the query's options")

  /** All scopes, the widest first. */
  val all: Seq[Scope] = Seq(Application, Session, Query)
}

/**
 * When a new value of a setting takes effect.
 *
 * @param changeableAtRunTime
 *   whether the setting can be changed for a running query
 */
sealed abstract class Effect(val name: String, val changeableAtRunTime: Boolean)

object Effect {

  /** Read once, when the application starts. */
  case object ApplicationStart extends Effect("application start", false)

  /** Fixed by the first batch of a checkpoint. */
  case object NewCheckpoint extends Effect("new checkpoint", false)

  /** Read when a query starts; can be changed for a running query, whose next batch uses the new value. */
  case object NextBatch extends Effect("next batch", true)

  /** Read when a query starts; can be changed by restarting the query from the same checkpoint. */
  case object QueryStart extends Effect("query start", false)
}
