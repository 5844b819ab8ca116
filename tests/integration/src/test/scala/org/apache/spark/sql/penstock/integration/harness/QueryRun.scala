package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress, Trigger}
import org.apache.spark.sql.{DataFrame, Dataset, Encoder, Encoders, Row, classic}

/**
 * The result of one run of a script.
 *
 * @param batches
 *   Rendered rows of each batch, once per delivery: every action on a batch is a delivery, and a batch may run again
 */
final case class RunResult(batches: Map[Long, Seq[Seq[String]]], progress: Seq[StreamingQueryProgress])

/** Observes a script while it is played. */
trait RunObserver {

  /** Called before the action with this index, which is a trigger. */
  def beforeTrigger(index: Int): Unit

  def delivered(batch: Long, rows: Seq[String]): Unit
}

/** Stores all deliveries. */
final private class Deliveries extends RunObserver {
  private var batches = Map.empty[Long, Vector[Seq[String]]]

  override def beforeTrigger(index: Int): Unit = ()

  override def delivered(batch: Long, rows: Seq[String]): Unit =
    synchronized(batches += batch -> (batches.getOrElse(batch, Vector.empty) :+ rows))

  def byBatch: Map[Long, Seq[Seq[String]]] = synchronized(batches)
}

/**
 * Plays a script against one query on one engine and records the rows of every batch.
 *
 * @param disturb
 *   Transformation of the query's result that injects faults
 * @param sinkActions
 *   How often the sink reads each batch, which is not persisted
 */
final class QueryRun(
    application: classic.SparkSession,
    engine: Engine,
    test: OperatorCase,
    checkpoint: Path,
    disturb: DataFrame => DataFrame = identity,
    sinkActions: Int = 1
) {

  private val session = engine.session(application)
  test.conf.foreach { case (key, value) => session.conf.set(key, value) }

  implicit private val eventEncoder: Encoder[Event] = Encoders.product[Event]
  private val left = MemoryStream[Event](session, QueryRun.MapTasks)
  private val right = MemoryStream[Event](session, QueryRun.MapTasks)
  private val clock = new TriggerClock
  private val progress = mutable.ArrayBuffer.empty[StreamingQueryProgress]
  private var runs = 0
  private var scriptedRun = -1

  /** Plays a script from the query's first start and returns the result. */
  def play(script: Seq[Step], startingAt: Set[Int] = Set.empty, doneAgain: Map[Int, Long] = Map.empty): RunResult = {
    val deliveries = new Deliveries
    play(Script.actions(script), 0, deliveries, startingAt, doneAgain)
    RunResult(deliveries.byBatch, progress.toSeq)
  }

  /**
   * Plays actions to the end.
   *
   * @param from
   *   Trigger to start with, at which an earlier run has ended. The start of the query replaces it
   * @param startingAt
   *   Triggers that a start of the query replaces as well
   * @param doneAgain
   *   Triggers whose batch, which is given, runs again in a further run
   */
  def play(
      actions: IndexedSeq[Action],
      from: Int,
      observer: RunObserver,
      startingAt: Set[Int],
      doneAgain: Map[Int, Long]
  ): Unit = {
    var query: StreamingQuery = null
    try {
      actions.zipWithIndex.foreach {
        case (Action.Add(leftRows, rightRows), _) =>
          left.addData(leftRows)
          if (test.twoInputs) right.addData(rightRows)
        case (trigger: Action.Trigger, index) =>
          if (trigger == Action.Start) scriptedRun += 1
          if (index >= from) observer.beforeTrigger(index)
          if (trigger == Action.Tick && query != null && !startingAt(index)) clock.tick(query)
          else {
            Option(query).foreach(stop)
            query = null
            // Only after the stop, or the query would begin a batch and be stopped in the middle of it.
            if (trigger == Action.Tick) clock.skip()
            if (index >= from) query = start(observer)
          }
          if (doneAgain.get(index).exists(QueryRun.committed(checkpoint).lastOption.contains)) {
            stop(query)
            QueryRun.loseNewestCommit(checkpoint)
            query = start(observer)
          }
        case (Action.LoseNewestCommit, _) =>
          stop(query)
          query = null
          QueryRun.loseNewestCommit(checkpoint)
        case (Action.Act(run), _) => run()
      }
    } finally Option(query).foreach(stop)
  }

  private def start(observer: RunObserver): StreamingQuery = {
    val input = new QueryInput(session, left, right, scriptedRun)
    val definition = disturb(test.query(input)).asInstanceOf[classic.Dataset[Row]]
    val sink = new ForeachBatchSink[Row](deliver(observer), ExpressionEncoder(definition.schema))
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

  private def deliver(observer: RunObserver)(rows: Dataset[Row], batch: Long): Unit = (1 to sinkActions).foreach { n =>
    session.sparkContext.setLocalProperty(QueryRun.ActionProperty, n.toString)
    observer.delivered(batch, rows.collect().map(Rendering.of).toSeq)
  }
}

object QueryRun {

  /** Local property with the number of the action on the batch that a task runs for, from 1. */
  val ActionProperty = "penstock.test.action"
  private val MapTasks = 2

  /** The plan of the newest batch of a query, if it ran one. */
  def lastPlan(query: StreamingQuery): Option[SparkPlan] =
    Option(query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution).map(_.executedPlan)

  /** The batches in the commit log, in ascending order. */
  def committed(checkpoint: Path): Seq[Long] = logged(checkpoint, "commits")

  /** The batches in one of Spark's logs, in ascending order. Empty if the log does not exist. */
  def logged(checkpoint: Path, log: String): Seq[Long] =
    Option(checkpoint.resolve(log).toFile.list).toSeq.flatten.flatMap(_.toLongOption).sorted

  /** Deletes the newest entry of the commit log, as if the driver had died before writing it. */
  def loseNewestCommit(checkpoint: Path): Unit = {
    val newest = committed(checkpoint).last
    Seq(s"$newest", s".$newest.crc").foreach(name => Files.deleteIfExists(checkpoint.resolve("commits").resolve(name)))
  }
}
