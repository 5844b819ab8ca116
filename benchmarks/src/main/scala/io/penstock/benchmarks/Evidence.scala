package io.penstock.benchmarks

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.StreamingQueryProgress

/** Checks that a side is what its name says, from what Spark wrote and measured. A wrong side ends the benchmark. */
object Evidence {

  /**
   * @param checkpoint
   *   of the query: its offset log names the provider and the number of state partitions
   * @param stage
   *   the stage that ran the stateful operators
   * @throws IllegalStateException
   *   where the side is something else
   */
  def check(side: Side, checkpoint: Path, progress: StreamingQueryProgress, stage: StageWatch.Stage): Unit = {
    def must(what: String, found: Any, expected: Any): Unit =
      if (found != expected)
        throw new IllegalStateException(
          s"side ${side.name}, batch ${progress.batchId}: $what is $found, expected $expected. What was measured is " +
            s"not what the name says; batch: ${progress.json}"
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
    // With the plugin on, a query that plain Spark runs reports that it was left alone.
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
