package io.penstock.benchmarks

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.SparkSession

import io.penstock.benchmarks.store.CheckBenchmark
import io.penstock.benchmarks.work.Operators
import org.openjdk.jmh.runner.options.{ChainedOptionsBuilder, TimeValue}

/** What checks cost: of one key and of one byte, by JMH, beside batches of which it is known how much they check. */
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
    def options(common: ChainedOptionsBuilder) = common
      .warmupIterations(5)
      .warmupTime(TimeValue.seconds(1))
      .measurementIterations(10)
      .measurementTime(TimeValue.seconds(1))
    Calls.measure(report, classOf[CheckBenchmark], "access|checksum")(options)(_ => Map("bench" -> "check"))
  }
}
