package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{EvenKeys, RowCost, ServedKeys, WhoRan}

/** Every key, and therefore every shard and partition, has the same work in every batch, so balancing gains nothing. */
object Uniform {
  private val Shards = 256
  private val KeysOfShard = 8

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val keys = EvenKeys(Shards, args.int("keys", Shards * KeysOfShard) / Shards)
    val rows = args.int("rows", tasks * 5120)
    val sides = Seq(Side.hdfs(tasks).copy(name = "off"), Side.penstock("on", Shards, tasks))
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for (side <- sides if args.wants(side)) yield () => {
        val setup = new SideSetup(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
        val numbers = setup.numbers(setup.session(spark), rows, args.int("map-tasks", 8))
        setup.start(ServedKeys.of(numbers, keys, RowCost(1.0), setup.gate, Shards), OutputMode.Update())
      }
      Comparison.run(
        watch,
        report,
        args,
        "uniform",
        starts,
        (c, batch) => WhoRan.moved(c.gate, batch).map("moved" -> _).toMap
      )
    }
  }
}
