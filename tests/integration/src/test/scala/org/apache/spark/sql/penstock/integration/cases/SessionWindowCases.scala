package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness.{OperatorCase, QueryInput}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.streaming.OutputMode.{Append, Complete}

/** Session windows. The state key consists of the group's key and the session's start. */
object SessionWindowCases {

  val appendMode: OperatorCase = sessions("session window, append with eviction", Append())

  private val completeMode = sessions("session window, complete", Complete())

  private val mergedBeforeTheShuffle = sessions(
    "session window, sessions merged before the shuffle",
    Append(),
    Map("spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition" -> "true")
  )

  private val dynamicGap = OperatorCase("session window with a gap of each row's own", Append())(
    grouped(_, session_window(col("ts"), when(col("value") % 2 === 0, "2 seconds").otherwise("1 seconds")))
  )

  private def sessions(name: String, mode: OutputMode, conf: Map[String, String] = Map.empty) =
    OperatorCase(name, mode, conf = conf)(grouped(_, session_window(col("ts"), "2 seconds")))

  private def grouped(in: QueryInput, session: org.apache.spark.sql.Column) =
    in.leftWatermarked.groupBy(session, col("key")).agg(count("*").as("n"), sum("value").as("total"))

  val all: Seq[OperatorCase] = Seq(appendMode, completeMode, mergedBeforeTheShuffle, dynamicGap)
}
