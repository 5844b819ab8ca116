package io.penstock.benchmarks

import java.nio.file.Files

import org.apache.spark.sql.penstock.benchmarks.{StoreSetup, StoreSetups, StoreShape}
import org.apache.spark.sql.{SparkSession, classic}

import io.penstock.benchmarks.store.StoreBenchmark
import org.openjdk.jmh.results.RunResult
import org.openjdk.jmh.runner.options.{ChainedOptionsBuilder, TimeValue, WarmupMode}

/** What one call of a store costs and what an entry takes, by JMH, all providers in this JVM. */
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
    // The HDFS-backed provider has no order.
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
      // Whatever is compiled for one provider is compiled for all of them before the first is measured.
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

  /** Bytes of an entry beyond its key and its value. */
  private def reportMemory(report: Report, side: Side, keys: Int, setup: StoreSetup): Unit = {
    val beyond = setup.memoryBytes.toDouble / keys - StoreShape.EntryBytes
    val label = Map("bench" -> "store", "call" -> "memory", "keys" -> keys.toString, "side" -> side.name)
    report.line(label, Seq(Map("bytes" -> beyond)))
  }
}
