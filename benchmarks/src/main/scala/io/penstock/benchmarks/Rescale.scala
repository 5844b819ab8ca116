package io.penstock.benchmarks

import scala.collection.mutable

import org.apache.spark.sql.SparkSession

import io.penstock.benchmarks.work.Operators

/** Measures changes from few tasks to many and back while a query runs. */
object Rescale {
  private val Shards = 256
  private val Few = 2
  private val Many = 16

  /** Number of batches between two changes. */
  private val Period = 10

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit =
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val side = Side.penstock("penstock", Shards, Few, Map("penstock.tasks" -> Few.toString))
      val setup = new SideSetup(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
      val (rows, keys) = (args.int("rows", 500000), args.int("keys", 500000))
      val contender = setup.start(spark, Operators.Aggregation, rows, keys, Few)
      val samples = Map(Few -> mutable.ArrayBuffer[(Sample, Int)](), Many -> mutable.ArrayBuffer[(Sample, Int)]())
      val warmUp = args.int("warm-up", 60)
      try
        (0 until warmUp + args.int("rounds", 200)).foreach { round =>
          val tasks = if (round / Period % 2 == 0) Few else Many
          if (round % Period == 0) contender.set("tasks", tasks.toString)
          val sample = contender.step(watch, tasks)
          if (round >= warmUp) samples(tasks) += sample -> round % Period
        }
      finally contender.stop()
      for ((tasks, kept) <- samples.toSeq.sortBy(_._1)) {
        val label = Map("tasks" -> tasks.toString)
        report.write("rescale", contender, kept.map(_._1).toSeq, kept.map(s => Map("sinceChange" -> s._2)).toSeq, label)
      }
    }
}
