package io.penstock.benchmarks

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.SparkSession

import io.penstock.benchmarks.store.CheckBenchmark
import io.penstock.benchmarks.work.Operators
import org.openjdk.jmh.runner.options.{ChainedOptionsBuilder, TimeValue}

/** Measures the cost of the checks of one key and of one byte with JMH, and counts how many of them a batch needs. */
object Check {
  private val Shards = 256

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val cores = spark.sparkContext.defaultParallelism
      val (rows, keys) = (args.int("rows", 10000), args.int("keys", 10000))
      val side = Side.penstock("penstock", Shards, cores)
      val setup = new SideSetup(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
      val start = () => setup.start(spark, Operators.Aggregation, rows, keys, cores)
      Comparison.run(
        watch,
        report,
        args,
        "check",
        Seq(start),
        (_, batch) => Map("accesses" -> 2L * rows, "checkedBytes" -> checkedBytes(setup.checkpoint, batch))
      )
    }
    calls(report)
  }

  /** Bytes of the files that were written for a batch. All of them have a checksum. 0 if the files are deleted. */
  private def checkedBytes(checkpoint: Path, batch: Long): Long =
    Seq("manifests" -> '.', "changelogs" -> '-').map { case (folder, separator) =>
      val path = checkpoint.resolve("state").resolve("_penstock").resolve(folder)
      if (!Files.exists(path)) 0L
      else Using.resource(Files.list(path)) {
        _.iterator().asScala
          .filter(_.getFileName.toString.startsWith(s"$batch$separator"))
          .map(Files.size)
          .sum
      }
    }.sum

  private def calls(report: Report): Unit = {
    def options(common: ChainedOptionsBuilder) = common
      .warmupIterations(5)
      .warmupTime(TimeValue.seconds(1))
      .measurementIterations(10)
      .measurementTime(TimeValue.seconds(1))
    Calls.measure(report, classOf[CheckBenchmark], "access|checksum")(options)(_ => Map("bench" -> "check"))
  }
}
