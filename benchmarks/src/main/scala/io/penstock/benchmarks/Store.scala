package io.penstock.benchmarks

import java.nio.file.Files

import org.apache.spark.sql.penstock.benchmarks.{StoreSetup, StoreSetups, StoreShape}
import org.apache.spark.sql.{SparkSession, classic}

import io.penstock.benchmarks.store.StoreBenchmark
import org.openjdk.jmh.results.RunResult
import org.openjdk.jmh.runner.options.{ChainedOptionsBuilder, TimeValue, WarmupMode}

/** Measures single calls of state stores with JMH, and the memory of an entry, for all providers in this JVM. */
object Store {
  private val Shards = 256
  private val Few = 10000

  def run(spark: SparkSession, args: Arguments, report: Report): Unit = {
    val hdfs = Side.hdfs(1)
    val sides = Seq(
      Side.penstock("penstock", Shards, 1),
      hdfs,
      Side.rocksdb(1),
      Side.rocksdbChangelog(1),
      Side.rocksdbWithoutCount(1)
    ).filter(args.wants)
    measure(spark, args, report, sides, StoreShape.Whole, Seq(StoreSetups.Keys), "get|put|remove")
    measure(spark, args, report, sides, StoreShape.Prefixed, Seq(StoreSetups.Keys), "prefixScan")
    // The HDFS-backed provider does not support range scans in key order.
    measure(spark, args, report, sides.filter(_ != hdfs), StoreShape.Ordered, Seq(StoreSetups.Keys), "rangeScan")
    measure(spark, args, report, sides, StoreShape.Whole, Seq(Few, StoreSetups.Keys), "commit")
  }

  private def measure(
      spark: SparkSession,
      args: Arguments,
      report: Report,
      sides: Seq[Side],
      shape: StoreShape,
      sizes: Seq[Int],
      calls: String
  ): Unit = {
    val names = for (side <- sides; keys <- sizes) yield {
      val directory = Files.createTempDirectory(Comparison.checkpoints(args), s"${side.name}-")
      val setup = new StoreSetup(spark.asInstanceOf[classic.SparkSession], side, shape, keys, directory)
      val name = StoreSetups.nameOf(side.name, shape, keys)
      StoreSetups.add(name, setup)
      if (calls == "commit") reportMemory(report, side, keys, setup)
      name
    }
    def options(common: ChainedOptionsBuilder) = common
      .param("side", sides.map(_.name): _*)
      .param("keys", sizes.map(_.toString): _*)
      // Warm up all providers before the first is measured, so that the JVM compiles code for all of them.
      .warmupMode(WarmupMode.BULK)
      .warmupIterations(args.int("warm-up", 10))
      .measurementIterations(args.int("rounds", 12))
      .timeout(TimeValue.minutes(10))
    try Calls.measure(report, classOf[StoreBenchmark], calls)(options)(label)
    finally names.foreach(StoreSetups.remove)
  }

  private def label(result: RunResult): Map[String, String] = {
    val params = result.getParams
    val keys = Option(params.getParam("keys")).filter(_ != "0").getOrElse(StoreSetups.Keys.toString)
    Map("bench" -> "store", "keys" -> keys, "side" -> params.getParam("side"))
  }

  /** Reports the bytes of an entry without its key and value. */
  private def reportMemory(report: Report, side: Side, keys: Int, setup: StoreSetup): Unit = {
    val beyond = setup.memoryBytes.toDouble / keys - StoreShape.EntryBytes
    val label = Map("bench" -> "store", "call" -> "memory", "keys" -> keys.toString, "side" -> side.name)
    report.line(label, Seq(Map("bytes" -> beyond)))
  }
}
