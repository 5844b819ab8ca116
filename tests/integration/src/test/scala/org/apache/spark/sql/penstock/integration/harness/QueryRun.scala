package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress, Trigger}
import org.apache.spark.sql.{DataFrame, Dataset, Encoder, Encoders, Row, classic}

/**
 * What one run of a script gave.
 *
 * @param batches
 *   the rows of each batch, rendered, once per delivery: a batch that was done again is delivered twice
 */
final case class RunResult(batches: Map[Long, Seq[Seq[String]]], progress: Seq[StreamingQueryProgress])

/**
 * Plays a script against one query on one engine and records the rows of every batch.
 *
 * @param disturb
 *   put on top of the query; injects faults
 */
final class QueryRun(
    application: classic.SparkSession,
    engine: Engine,
    test: OperatorCase,
    checkpoint: Path,
    disturb: DataFrame => DataFrame = identity
) {

  private val session = engine.session(application)
  test.conf.foreach { case (key, value) => session.conf.set(key, value) }

  implicit private val eventEncoder: Encoder[Event] = Encoders.product[Event]
  private val left = MemoryStream[Event](session, QueryRun.MapTasks)
  private val right = MemoryStream[Event](session, QueryRun.MapTasks)
  private val clock = new TriggerClock
  private val deliveries = mutable.Map.empty[Long, Vector[Seq[String]]]
  private val progress = mutable.ArrayBuffer.empty[StreamingQueryProgress]
  private var runs = 0

  def play(script: Seq[Step]): RunResult = {
    var query = start()
    try {
      script.foreach {
        case Step.Feed(leftRows, rightRows) =>
          left.addData(leftRows)
          if (test.twoInputs) right.addData(rightRows)
          clock.tick(query)
          clock.tick(query)
        case Step.Idle =>
          (1 to 3).foreach(_ => clock.tick(query))
        case Step.Disturb(what) =>
          what()
        case Step.Restart =>
          stop(query)
          query = start()
        case Step.Replay =>
          stop(query)
          QueryRun.loseNewestCommit(checkpoint)
          query = start()
      }
    } finally stop(query)
    RunResult(deliveries.toMap, progress.toSeq)
  }

  private def start(): StreamingQuery = {
    val input = new QueryInput(session, left, right, runs)
    val definition = disturb(test.query(input)).asInstanceOf[classic.Dataset[Row]]
    val sink = new ForeachBatchSink[Row](record _, ExpressionEncoder(definition.schema))
    clock.reset()
    val query = session.streams.startQuery(
      userSpecifiedName = None,
      userSpecifiedCheckpointLocation = Some(checkpoint.toString),
      df = definition,
      extraOptions = engine.queryOptions(runs),
      sink = sink,
      outputMode = test.mode,
      trigger = Trigger.ProcessingTime(TriggerClock.TriggerMillis),
      triggerClock = clock
    )
    runs += 1
    clock.awaitIdle(query)
    query
  }

  private def stop(query: StreamingQuery): Unit = {
    query.stop()
    progress ++= query.recentProgress
    if (query.exception.isEmpty) QueryRun.lastPlan(query).foreach { plan =>
      val contradictions = engine.contradictions(checkpoint, plan)
      require(contradictions.isEmpty, s"not run by ${engine.name}: ${contradictions.mkString("; ")}\n$plan")
      test.check(plan)
    }
  }

  private def record(rows: Dataset[Row], batch: Long): Unit = {
    val rendered = rows.collect().map(Rendering.of).toSeq
    deliveries.synchronized(deliveries(batch) = deliveries.getOrElse(batch, Vector.empty) :+ rendered)
  }
}

object QueryRun {
  private val MapTasks = 2

  /** The plan of the newest batch of a query, if it ran one. */
  def lastPlan(query: StreamingQuery): Option[SparkPlan] =
    Option(query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution).map(_.executedPlan)

  /** The batches in the commit log, in ascending order. */
  def committed(checkpoint: Path): Seq[Long] =
    Using.resource(Files.list(checkpoint.resolve("commits"))) {
      _.iterator.asScala.flatMap(_.getFileName.toString.toLongOption).toSeq.sorted
    }

  /** Deletes the newest entry of the commit log, as if the driver had died before writing it. */
  def loseNewestCommit(checkpoint: Path): Unit = {
    val newest = committed(checkpoint).last
    Seq(s"$newest", s".$newest.crc").foreach(name => Files.deleteIfExists(checkpoint.resolve("commits").resolve(name)))
  }
}
