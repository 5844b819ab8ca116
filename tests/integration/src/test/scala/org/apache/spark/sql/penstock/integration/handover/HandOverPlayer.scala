package org.apache.spark.sql.penstock.integration.handover

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.{Dataset, Encoders, Row, classic}

/**
 * Plays runs with plain Spark and with Penstock, and compares the rows of every action.
 *
 * @param directory
 *   Directory for checkpoints and for the files that tasks leave
 */
final class HandOverPlayer(application: classic.SparkSession, directory: Path) {
  import HandOverPlayer._

  def play(run: HandOverRun): Outcome = {
    val expected = rowsOf(Engine.stock(run.query.stock, 3), run)((batch, _) =>
      Seq(batch.collect().map(Rendering.of).toSeq)
    )
    ExecutorProcesses.awaitSidecars(application.sparkContext, count = 2)
    var how: ExecutorEnd.How = ExecutorEnd.TooLate
    try {
      val found = rowsOf(run.engine, run)(actions(run)(how = _))
      Outcome(BatchComparison.difference(RunResult(expected, Nil), RunResult(found, Nil), Equivalence.SameRows), how)
    } catch { case NonFatal(e) => Outcome(Some(s"the query failed: ${Errors.text(e)}"), how) }
  }

  /** The rows of each action on a batch. */
  private def actions(run: HandOverRun)(ended: ExecutorEnd.How => Unit)(
      batch: Dataset[Row],
      id: Long
  ): Seq[Seq[String]] = {
    val reads = mutable.ArrayBuffer.empty[Seq[ReadPartition]]
    (1 to run.actions).foreach { action =>
      val readers = Files.createTempDirectory(directory, "readers")
      val ends = action == run.slow && id == run.endsIn
      def read(pausesMs: (Int, String) => Int) =
        batch.rdd.mapPartitionsWithIndex(new SlowRead(pausesMs, readers.toString)).collect().toSeq
      if (!ends) reads += read((_, _) => 0)
      else {
        val byExecutor = reads.last.groupBy(_.executor).toSeq.sortBy(_._1)
        val (executor, own) = byExecutor(run.executor % byExecutor.size)
        val end = new ExecutorEnd(readers, own, run.endsAfterMs)
        try reads += read(run.pauses(executor, own.map(_.partition).toSet))
        finally ended(end.stop())
      }
    }
    reads.map(_.flatMap(_.rows)).toSeq
  }

  /** The rows of each action on each batch. */
  private def rowsOf(engine: Engine, run: HandOverRun)(
      actions: (Dataset[Row], Long) => Seq[Seq[String]]
  ): Map[Long, Seq[Seq[String]]] = {
    val session = engine.session(application)
    val source = MemoryStream[Event](Encoders.product[Event], session)
    val checkpoint = Files.createTempDirectory(directory, "checkpoint")
    var rows = Map.empty[Long, Seq[Seq[String]]]
    val query = run.query.build(source.toDS()).writeStream
      .outputMode("update")
      .option("checkpointLocation", checkpoint.toString)
      .options(engine.queryOptions(0))
      .foreachBatch((batch: Dataset[Row], id: Long) => rows += id -> actions(batch, id))
      .start()
    try run.inputs.foreach { input =>
        source.addData(input)
        query.processAllAvailable()
      }
    finally query.stop()
    require(Engine.recordedConf(checkpoint)(Engine.ProviderKey) == engine.provider)
    rows
  }
}

object HandOverPlayer {

  /**
   * @param difference
   *   Difference from plain Spark's rows, if there is one. Each delivery in it is an action, counted from 0
   */
  final case class Outcome(difference: Option[String], how: ExecutorEnd.How)
}
