package io.penstock.benchmarks

import java.nio.file.Paths

import scala.collection.immutable.ListMap

import org.apache.spark.sql.SparkSession

/**
 * Runs one benchmark and writes its samples. `penstock bench` starts this program.
 *
 * The arguments are the name of the benchmark, `--out=FILE`, and the options of the benchmark.
 */
object Main {
  def main(args: Array[String]): Unit = {
    val options = new Arguments(args.toSeq.drop(1))
    val spark = SparkSession.builder().getOrCreate()
    val watch = new StageWatch
    spark.sparkContext.addSparkListener(watch)
    val report = new Report(Paths.get(options.required("out")))
    val benchmarks = ListMap[String, () => Unit](
      "overhead" -> (() => Overhead.run(spark, options, watch, report)),
      "barrier" -> (() => Barrier.run(spark, options, watch, report)),
      "skew" -> (() => Skew.run(spark, options, watch, report)),
      "latency" -> (() => Latency.run(spark, options, watch, report)),
      "hotkey" -> (() => HotKey.run(spark, options, watch, report)),
      "grow" -> (() => Grow.run(spark, options, watch, report)),
      "uniform" -> (() => Uniform.run(spark, options, watch, report)),
      "busy" -> (() => Busy.run(spark, options, watch, report)),
      "unrouted" -> (() => Unrouted.run(spark, options, watch, report)),
      "observe" -> (() => Observe.run(spark, options, watch, report)),
      "barrier-cost" -> (() => BarrierCost.run(spark, options, watch, report)),
      "store" -> (() => Store.run(spark, options, report)),
      "recover" -> (() => Recover.run(spark, options, watch, report)),
      "rescale" -> (() => Rescale.run(spark, options, watch, report)),
      "large" -> (() => Large.run(spark, options, watch, report)),
      "check" -> (() => Check.run(spark, options, watch, report)),
      "move" -> (() => Move.run(spark, options, report)),
      "ring" -> (() => Ring.run(spark, options, report)),
      "join-executor" -> (() => JoinExecutor.run(spark, options, watch, report)),
      "sidecar" -> (() => Sidecars.run(spark, options, watch, report)),
      "loop" -> (() => Loop.run(options, report))
    )
    try {
      val name = args.headOption.mkString
      val run = benchmarks.getOrElse(
        name,
        throw new IllegalArgumentException(s"there is no benchmark $name; allowed: ${benchmarks.keys.mkString(", ")}")
      )
      run()
    } finally {
      report.close()
      spark.stop()
    }
  }
}
