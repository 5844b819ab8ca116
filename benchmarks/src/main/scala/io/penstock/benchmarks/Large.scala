package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.{col, lit, pmod}
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.source.BatchSizes

/** What a batch costs that changes 1,000 keys of a large state, and of a small one. */
object Large {
  private val Shards = 256
  private val Few = 100000
  private val Loads = 20

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    val sides = Seq(
      Side.penstock("penstock", Shards, cores),
      Side.hdfs(cores),
      Side.rocksdb(cores),
      Side.rocksdbChangelog(cores)
    ).filter(args.wants)
    val many = args.int("keys", 20000000)
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for (side <- sides; keys <- Seq(Few, many)) yield () => {
        val lane = new Lane(side, manager, Map("keys" -> keys.toString), every = 1, Comparison.checkpoints(args))
        val sizes = BatchSizes(Loads.toLong, (keys / Loads).toLong, args.int("rows", 1000).toLong)
        val numbers = lane.numbers(lane.session(spark), sizes, cores)
        val counts = numbers.groupBy(pmod(col("value") * lit(LoadedKeys.Stride), lit(keys.toLong)).as("k")).count()
        LoadedKeys.load(lane.start(counts, OutputMode.Update()), Loads, watch)
      }
      Comparison.run(watch, report, args, "large", starts)
    }
  }
}
