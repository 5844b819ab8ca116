package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

/** Measures batches that change 1,000 keys, with a large and with a small state. */
object Large {
  private val Shards = 256
  private val Few = 100000

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    val many = args.int("keys", 20000000)
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for (side <- LoadedKeys.sides(Shards, cores, args); keys <- Seq(Few, many)) yield () => {
        val setup = new SideSetup(side, manager, Map("keys" -> keys.toString), every = 1, Comparison.checkpoints(args))
        val numbers = setup.numbers(setup.session(spark), LoadedKeys.sizes(keys, args.int("rows", 1000)), cores)
        val contender = setup.start(numbers.groupBy(LoadedKeys.key(keys).as("k")).count(), OutputMode.Update())
        LoadedKeys.load(contender, watch)
        contender
      }
      Comparison.run(watch, report, args, "large", starts)
    }
  }
}
