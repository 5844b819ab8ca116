package io.penstock.benchmarks

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.StreamingQueryProgress

/** Checks that a side is what its name says, by Spark's files and metrics. A wrong side ends the benchmark. */
object Evidence {

  /**
   * Checks a side after a batch.
   *
   * @param checkpoint
   *   checkpoint of the query. Its offset log names the provider and the number of state partitions
   * @param stage
   *   stage that ran the stateful operators
   * @throws IllegalStateException
   *   if the side is not what its name says
   */
  def check(side: Side, checkpoint: Path, progress: StreamingQueryProgress, stage: StageWatch.Stage): Unit = {
    def must(property: String, found: Any, expected: Any): Unit =
      if (found != expected)
        throw new IllegalStateException(
          s"side ${side.name}, batch ${progress.batchId}: $property is $found, expected $expected. The measured side " +
            s"is not what its name says; progress of the batch: ${progress.json}"
        )
    if (progress.batchId == 0) {
      val log = Files.readAllLines(checkpoint.resolve("offsets").resolve("0")).asScala.mkString
      must("provider in the offset log", log.contains(s"\"${side.providerClass}\""), true)
    }
    must("number of stateful operators > 0", progress.stateOperators.nonEmpty, true)
    progress.stateOperators.foreach(o =>
      must("number of state partitions", o.numShufflePartitions, side.statePartitions)
    )
    must("number of tasks of the stateful stage", stage.tasks, side.tasks)
    // With the plugin enabled, Penstock reports mode `off` for a query that plain Spark runs.
    val report = Option(progress.observedMetrics.get("penstock"))
    must("mode that Penstock reports", report.fold("off")(_.getAs[String]("mode")), side.mode)
    if (side.mode != "off") {
      val regions = report.get.getSeq[Row](report.get.fieldIndex("regions"))
      must("whether all regions are routed", regions.forall(_.getAs[Boolean]("routed")), side.routed)
      must("whether all run in turn", regions.forall(_.getAs[String]("inTurn") != null), side.inTurn)
      must("whether rows were counted", regions.forall(_.getAs[Long]("rows") > 0), side.boundAtBarrier)
    }
  }
}
