package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{Burners, ComputedKeys, EvenKeys, WhoRan}

/**
 * Even keys on a busy machine: every shard has the same rows in every batch, and other processes use half of each core.
 * Differences between the measured times of rows are noise, which must not move shards.
 */
object Busy {
  private val Shards = 256
  private val RowsOfShard = 20

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    val keys = EvenKeys(Shards, args.int("keys", Shards) / Shards)
    val rows = args.int("rows", Shards * RowsOfShard)
    val sides = Seq(Side.inMode("off", cores), Side.penstock("on", Shards, cores))
    val burners = Burners.start(cores)
    try
      for (manager <- FileManager.named(args.text("file-manager", "local"))) {
        val starts = for (side <- sides if args.wants(side)) yield () => {
          val setup = new SideSetup(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
          val numbers = setup.numbers(setup.session(spark), rows, Overhead.mapTasks(spark, args))
          setup.start(ComputedKeys.of(numbers, keys, setup.gate, Shards), OutputMode.Update())
        }
        Comparison.run(
          watch,
          report,
          args,
          "busy",
          starts,
          (c, batch) => WhoRan.moved(c.gate, batch).map("moved" -> _).toMap
        )
      }
    finally burners.close()
  }
}
