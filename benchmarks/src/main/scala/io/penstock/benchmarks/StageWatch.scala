package io.penstock.benchmarks

import scala.collection.mutable

import org.apache.spark.scheduler._

/** Collects the stages of every batch from the events of Spark's scheduler. */
final class StageWatch extends SparkListener {
  import StageWatch._

  private val batchOfStage = mutable.Map.empty[Int, Batch]
  private val rowsOfStage = mutable.Map.empty[(Int, Int), mutable.ArrayBuffer[(Long, String)]]
  private val stages = mutable.Map.empty[Batch, mutable.ArrayBuffer[Stage]]

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit = synchronized {
    val p = Option(event.properties)
    for (q <- p.map(_.getProperty("sql.streaming.queryId")); b <- p.map(_.getProperty("streaming.sql.batchId")))
      if (q != null && b != null) batchOfStage(event.stageInfo.stageId) = Batch(q, b.toLong)
  }

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit = synchronized {
    if (event.taskInfo.successful && event.taskMetrics != null)
      rowsOfStage.getOrElseUpdate((event.stageId, event.stageAttemptId), mutable.ArrayBuffer()) +=
        (event.taskMetrics.shuffleReadMetrics.recordsRead -> event.taskInfo.executorId)
  }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = synchronized {
    val info = event.stageInfo
    val rows = rowsOfStage.remove((info.stageId, info.attemptNumber())).getOrElse(mutable.ArrayBuffer.empty).toSeq
    for {
      batch <- batchOfStage.remove(info.stageId)
      from <- info.submissionTime
      to <- info.completionTime
    } stages.getOrElseUpdate(batch, mutable.ArrayBuffer()) +=
      Stage(info.stageId, info.numTasks, to - from, rows.map(_._1), rows.map(_._2))
    notifyAll()
  }

  /**
   * Returns the stages of a batch in order. Waits for events that the listener bus has not delivered yet.
   *
   * @throws java.util.concurrent.TimeoutException
   *   if no stage that reads a shuffle is reported within 30 s
   */
  def of(query: String, batch: Long): Seq[Stage] = synchronized {
    val key = Batch(query, batch)
    val deadline = System.nanoTime() + 30L * 1000 * 1000 * 1000
    while (!stages.get(key).exists(_.exists(_.readsShuffle))) {
      if (System.nanoTime() > deadline)
        throw new java.util.concurrent.TimeoutException(
          s"no stage that reads a shuffle was reported within 30 s for batch $batch of query $query"
        )
      wait(100)
    }
    stages.remove(key).map(_.sortBy(_.id).toSeq).getOrElse(Nil)
  }
}

object StageWatch {
  final private case class Batch(query: String, id: Long)

  /**
   * A completed stage.
   *
   * @param ms
   *   time from submission to completion
   * @param rows
   *   number of shuffled rows that each task read
   * @param executors
   *   executor on which each task ran
   */
  final case class Stage(id: Int, tasks: Int, ms: Long, rows: Seq[Long], executors: Seq[String]) {
    def readsShuffle: Boolean = rows.exists(_ > 0)
  }
}
