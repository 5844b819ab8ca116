package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession

import io.penstock.benchmarks.work.Operators

/**
 * Measures the cost of binding at the barrier with uniform keys, where it gains nothing, against a binding that is made
 * during planning.
 */
object BarrierCost {
  private val Shards = 256

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    val sides = Seq(Side.penstockWithoutBarrier("planning", Shards, cores), Side.penstock("barrier", Shards, cores))
    val (rows, keys) = (args.int("rows", 10000), args.int("keys", 10000))
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for (mapTasks <- Seq(2, 8); side <- sides if args.wants(side)) yield () => {
        val setup =
          new SideSetup(side, manager, Map("mapTasks" -> mapTasks.toString), every = 1, Comparison.checkpoints(args))
        setup.start(spark, Operators.Aggregation, rows, keys, mapTasks)
      }
      Comparison.run(watch, report, args, "barrier-cost", starts)
    }
  }
}
