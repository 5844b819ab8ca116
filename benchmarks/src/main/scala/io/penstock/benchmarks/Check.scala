package io.penstock.benchmarks

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.SparkSession

import io.penstock.benchmarks.store.CheckBenchmark
import io.penstock.benchmarks.work.Operators
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.{OptionsBuilder, TimeValue}

/** What checks cost: of one key and of one byte, by JMH, beside batches of which it is known how much they check. */
object Check {
  private val Shards = 256

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val cores = spark.sparkContext.defaultParallelism
      val (rows, keys) = (args.int("rows", 10000), args.int("keys", 10000))
      val side = Side.penstock("penstock", Shards, cores)
      val lane = new Lane(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
      val start = () => {
        val numbers = lane.numbers(lane.session(spark), rows, cores)
        lane.start(Operators.Aggregation.over(numbers, rows, keys), Operators.Aggregation.mode)
      }
      Comparison.run(
        watch,
        report,
        args,
        "check",
        Seq(start),
        (_, batch) => Map("accesses" -> 2L * rows, "checkedBytes" -> checkedBytes(lane.checkpoint, batch))
      )
    }
    calls(report)
  }

  /** What was written for a batch, which is all that has a checksum; 0 where it is gone. */
  private def checkedBytes(checkpoint: Path, batch: Long): Long =
    Seq("manifests" -> '.', "changelogs" -> '-').map { case (folder, separator) =>
      val place = checkpoint.resolve("state").resolve("_penstock").resolve(folder)
      if (!Files.exists(place)) 0L
      else Using.resource(Files.list(place)) {
        _.iterator().asScala
          .filter(_.getFileName.toString.startsWith(s"$batch$separator"))
          .map(Files.size)
          .sum
      }
    }.sum

  private def calls(report: Report): Unit = {
    val options = new OptionsBuilder()
      .include(s"${classOf[CheckBenchmark].getName.replace(".", "\\.")}\\..*")
      .forks(0)
      .warmupIterations(5)
      .warmupTime(TimeValue.seconds(1))
      .measurementIterations(10)
      .measurementTime(TimeValue.seconds(1))
      .shouldFailOnError(true)
      .build()
    new Runner(options).run().asScala.foreach { result =>
      val label = Map("bench" -> "check", "call" -> result.getParams.getBenchmark.split('.').last)
      val scores =
        result.getBenchmarkResults.asScala.flatMap(_.getIterationResults.asScala).map(_.getPrimaryResult.getScore)
      report.line(label, scores.toSeq.map(ns => Map("ns" -> ns)))
    }
  }
}
