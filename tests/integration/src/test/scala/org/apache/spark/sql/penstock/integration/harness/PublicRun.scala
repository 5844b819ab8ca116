package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.{DataStreamWriter, StreamingQuery}

/** Runs queries through Spark's public interface until their trigger is done. */
object PublicRun {
  private val LimitMillis = 120000L

  /** Starts a query that ends by itself and waits for its end. Throws the query's error if it fails. */
  def toTheEnd(writer: DataStreamWriter[Row]): StreamingQuery = {
    val query = writer.start()
    try {
      if (!query.awaitTermination(LimitMillis)) {
        throw new IllegalStateException(s"the query took more than $LimitMillis ms: ${query.lastProgress}")
      }
      query
    } finally query.stop()
  }
}
