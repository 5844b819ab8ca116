package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Column, classic}

import io.penstock.errors.PenstockException

/** Keys that an application pins, or returns to their base shards, while its query runs. It is forgotten with the run. */
object RunTimePins {

  /**
   * Pins a key, or returns it to its base shard for good, from the next batch on.
   *
   * @param key
   *   its values, or columns without names, in the order of the grouping
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NOT_RUNNING where the query has ended or has planned no batch yet, PENSTOCK_NO_SUCH_KEY where no part of it
   *   has keys of such types, PENSTOCK_CANNOT_PIN where nothing, or nothing more, can be pinned
   */
  def order(query: StreamingQuery, key: Seq[Any], pin: Boolean): Unit =
    order(query, notDone(key.map(String.valueOf(_)), pin), pin)(session =>
      key.map(value => session.expression(lit(value): Column))
    )

  /** What did not come to be where it is refused. */
  private[penstock] def notDone(key: Seq[String], pin: Boolean): String =
    s"the key ${key.mkString("(", ", ", ")")} was not ${if (pin) "" else "un"}pinned"

  /** The same for a key that is made in the query's session. */
  private[penstock] def order(query: StreamingQuery, what: String, pin: Boolean)(
      key: classic.SparkSession => Seq[Expression]
  ): Unit = {
    val run = SessionRouting.ofQuery(query).flatMap { of =>
      of.routing(query.runId).map(of.session.asInstanceOf[classic.SparkSession] -> _)
    }
    val (session, routing) = run.getOrElse(throw new PenstockException(
      "PENSTOCK_NOT_RUNNING",
      s"$what: the run ${query.runId} has ended, or Penstock has planned no batch of it yet. Call this when the query runs"
    ))
    routing.order(key(session), pin, what)
  }
}
