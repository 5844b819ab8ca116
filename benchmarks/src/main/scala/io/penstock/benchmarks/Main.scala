package io.penstock.benchmarks

import java.nio.file.Paths

import org.apache.spark.sql.SparkSession

/**
 * Runs one benchmark and writes what it measured. Started by `penstock bench`.
 *
 * Arguments: the benchmark's name (`overhead`, `barrier`, `barrier-cost`, `store`, `recover`, `large`), `--out=FILE`, and the benchmark's options.
 */
object Main {
  def main(args: Array[String]): Unit = {
    val options = new Arguments(args.toSeq.drop(1))
    val spark = SparkSession.builder().getOrCreate()
    val watch = new StageWatch
    spark.sparkContext.addSparkListener(watch)
    val report = new Report(Paths.get(options.required("out")))
    try
      args.headOption match {
        case Some("overhead") => Overhead.run(spark, options, watch, report)
        case Some("barrier") => Barrier.run(spark, options, watch, report)
        case Some("barrier-cost") => BarrierCost.run(spark, options, watch, report)
        case Some("store") => Store.run(spark, options, report)
        case Some("recover") => Recover.run(spark, options, watch, report)
        case Some("large") => Large.run(spark, options, watch, report)
        case other =>
          throw new IllegalArgumentException(
            s"benchmark ${other.mkString}; allowed: overhead, barrier, barrier-cost, store, recover, large"
          )
      }
    finally {
      report.close()
      spark.stop()
    }
  }
}
