package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession

import io.penstock.benchmarks.work.Operators

/** Measures the cost of mode `observe`, in which Penstock measures, plans and reports, and changes nothing. */
object Observe {

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for (side <- Seq("off", "observe").map(Side.inMode(_, cores)) if args.wants(side)) yield () =>
        new SideSetup(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
          .start(spark, Operators.Aggregation, Overhead.rows(args), Overhead.keys(args), Overhead.mapTasks(spark, args))
      Comparison.run(watch, report, args, "observe", starts)
    }
  }
}
