package org.apache.spark.sql.penstock.integration

import scala.collection.mutable

import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.cases.PartitionCases
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQueryException
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row}

/** Whatever a plan does with partitions, few tasks run its state, and the answer equals plain Spark's. */
class PartitionsSuite extends OperatorMatrixSuite {

  override protected def applicationConf: Map[String, String] = super.applicationConf ++ ForeignNodes.Conf

  Brief.someOf(PartitionCases.all, every = 2).foreach { operatorCase =>
    test(s"${operatorCase.name}: state runs in few tasks") {
      val (_, tasks) = maxTasks(assertSameAnswers(operatorCase))
      assert(tasks <= PartitionsSuite.MaxTasks)
    }
  }

  Brief.orElse(Seq(PartitionCases.between), Seq(PartitionCases.below, PartitionCases.between)).foreach { operatorCase =>
    test(s"${operatorCase.name}: batches run again, and tasks fail and are retried") {
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

  /** Runs `body` and returns the largest number of tasks of a stage with state. */
  private def maxTasks[T](body: => T): (T, Int) = {
    val stages = new StageSizes
    (Faults.listening(application.sparkContext, stages)(body), stages.most)
  }

  /** Runs two batches of a foreachBatch query that only runs `action`. */
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

  test("isEmpty on a hash aggregation reads each task's first row and thereby all of the state") {
    onlyDoing(_.groupBy("value").agg(count("*")))(batch => assert(!batch.isEmpty))
  }

  test("isEmpty on other operators reads only a part of the state, which is an error") {
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

  /** Largest number of tasks that the chaos policy of the matrix uses. */
  val MaxTasks = 5
}

private class StageSizes extends SparkListener {
  private val sizes = mutable.ArrayBuffer.empty[Int]

  override def onStageCompleted(end: SparkListenerStageCompleted): Unit = synchronized {
    if (end.stageInfo.rddInfos.exists(_.name.contains("StateStore"))) sizes += end.stageInfo.numTasks: Unit
  }

  def most: Int = synchronized(sizes.max)
}
