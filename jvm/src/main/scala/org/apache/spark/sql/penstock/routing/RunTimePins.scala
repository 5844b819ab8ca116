package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Column, classic}

import io.penstock.errors.PenstockException

/** Pins keys, or returns them to their base shards, while a query runs. These orders are valid until the run ends. */
object RunTimePins {

  /**
   * Pins a key, or returns it permanently to its base shard, from the next batch on.
   *
   * @param key
   *   Values of the key, or foldable columns, in the order of the grouping
   * @param pin
   *   Whether the key is pinned; otherwise it is unpinned
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NOT_RUNNING if the query has ended or has planned no batch yet, PENSTOCK_NO_SUCH_KEY if no region of the
   *   query has keys of these types, PENSTOCK_CANNOT_PIN if the query cannot have pinned keys, or no more of them
   */
  def order(query: StreamingQuery, key: Seq[Any], pin: Boolean): Unit =
    order(query, notDone(key.map(String.valueOf(_)), pin), pin)(session =>
      key.map(value => session.expression(lit(value): Column))
    )

  /** First part of the error message for an order that is refused. */
  private[penstock] def notDone(key: Seq[String], pin: Boolean): String =
    s"the key ${key.mkString("(", ", ", ")")} was not ${if (pin) "" else "un"}pinned"

  /**
   * Like the public method, for a key that is made in the query's session.
   *
   * @param failure
   *   First part of the error message, from [[notDone]]
   */
  private[penstock] def order(query: StreamingQuery, failure: String, pin: Boolean)(
      key: classic.SparkSession => Seq[Expression]
  ): Unit = {
    val run = SessionRoutings.ofQuery(query).flatMap { sessionRouting =>
      sessionRouting.routing(query.runId).map(sessionRouting.session.asInstanceOf[classic.SparkSession] -> _)
    }
    val (session, routing) = run.getOrElse(throw new PenstockException(
      "PENSTOCK_NOT_RUNNING",
      s"$failure: the run ${query.runId} has ended, or Penstock has not planned a batch of it yet. Call this while " +
        "the query runs."
    ))
    routing.order(key(session), pin, failure)
  }
}
