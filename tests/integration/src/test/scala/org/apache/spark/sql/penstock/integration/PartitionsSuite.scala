package org.apache.spark.sql.penstock.integration

import scala.collection.mutable

import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.cases.PartitionCases
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQueryException
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row}

/** Whatever a plan does with partitions, few tasks run its state, and the answer is plain Spark's. */
class PartitionsSuite extends OperatorMatrixSuite {

  override protected def applicationConf: Map[String, String] = super.applicationConf ++ ForeignNodes.Conf

  Brief.someOf(PartitionCases.all, every = 2).foreach { operatorCase =>
    test(s"${operatorCase.name}: few tasks") {
      val (_, tasks) = maxTasks(assertSameAnswers(operatorCase))
      assert(tasks <= PartitionsSuite.MaxTasks)
    }
  }

  Brief.orElse(Seq(PartitionCases.between), Seq(PartitionCases.below, PartitionCases.between)).foreach { operatorCase =>
    test(s"${operatorCase.name}: batches done again, tasks that fail and are retried") {
      val (_, ends) = Faults.countingTaskEnds(application.sparkContext) {
        assertSameAnswers(operatorCase, Script.withReplays, Faults.failTasksOnce)
      }
      assert(Faults.failures(ends) > 0)
    }

    test(s"${operatorCase.name}: several actions on a batch, and a lost map output") {
      val (_, ends) = Faults.countingTaskEnds(application.sparkContext) {
        val found = assertSameAnswers(operatorCase, disturb = Faults.loseMapOutputOnce, sinkActions = 3)
        assert(found.batches.values.forall(_.size >= 3))
      }
      assert(Faults.fetchFailures(ends) > 0)
    }
  }

  /** With the most tasks that a stage with state had meanwhile. */
  private def maxTasks[T](body: => T): (T, Int) = {
    val stages = new StageSizes
    (Faults.listening(application.sparkContext, stages)(body), stages.most)
  }

  /** Runs two batches whose function does nothing but that. */
  private def onlyDoing(query: DataFrame => DataFrame)(action: Dataset[Row] => Unit): Unit = {
    val session = Engine.penstock(OperatorCase.Shards, policy = "static").session(application)
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val running = query(source.toDF()).writeStream.outputMode("update")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .foreachBatch((batch: Dataset[Row], _: Long) => action(batch))
      .start()
    try Seq(1, 2).foreach { _ =>
        source.addData(1L to 100L)
        running.processAllAvailable()
      }
    finally running.stop()
  }

  test("isEmpty reads each task's first row, which is all of a hash aggregation") {
    onlyDoing(_.groupBy("value").agg(count("*")))(batch => assert(!batch.isEmpty))
  }

  test("isEmpty reads a part of what other operators hand over") {
    val error = intercept[StreamingQueryException] {
      onlyDoing(_.withColumn("i", explode(sequence(lit(1), lit(3)))).dropDuplicates("value", "i"))(batch =>
        assert(!batch.isEmpty)
      )
    }
    val causes = Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).map(_.toString).toSeq
    assert(causes.exists(c => c.contains("COMMIT_VALIDATION") || c.contains("PENSTOCK_STATE_INCOMPLETE")), causes)
  }
}

private object PartitionsSuite {

  /** What the chaos of the matrix takes. */
  val MaxTasks = 5
}

private class StageSizes extends SparkListener {
  private val sizes = mutable.ArrayBuffer.empty[Int]

  override def onStageCompleted(end: SparkListenerStageCompleted): Unit = synchronized {
    if (end.stageInfo.rddInfos.exists(_.name.contains("StateStore"))) sizes += end.stageInfo.numTasks: Unit
  }

  def most: Int = synchronized(sizes.max)
}
