package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{HotKeys, RowCost, ServedKeys}

/**
 * One key gets 60 % of the rows that a task can process, and later another key instead. In the case `alone`, the shard
 * of the key has few other rows. In the case `crowded`, it has another key with half of the rows that a task can
 * process, so that the shard has more than a task's share.
 */
object HotKey {
  private val Shards = 256
  private val HotShare = 0.6
  private val NeighbourShare = 0.5

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val rows = args.int("rows", tasks * 1000)
    val keys = args.int("keys", 10000)
    // Plain Spark does not react to hot keys, so it takes part in few rounds.
    val sides = Seq(Side.hdfs(tasks).copy(name = "plain") -> 5, Side.penstock("penstock", Shards, tasks) -> 1)
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for {
        (hot, neighbour) <- Seq("alone" -> 0.0, "crowded" -> NeighbourShare)
        (side, every) <- sides if args.wants(side)
      } yield () => {
        val setup = new SideSetup(side, manager, Map("hot" -> hot), every, Comparison.checkpoints(args))
        val numbers = setup.numbers(setup.session(spark), rows, args.int("map-tasks", 8))
        val hotKeys = HotKeys(keys, rows.toLong, HotShare / tasks, neighbour / tasks, Shards)
        setup.start(ServedKeys.of(numbers, hotKeys, RowCost(1.0), setup.gate, Shards), OutputMode.Update())
      }
      Comparison.run(watch, report, args, "hotkey", starts, (_, batch) => sinceChange(batch))
    }
  }

  private def sinceChange(batch: Long): Map[String, Any] = HotKeys
    .change(batch)
    .fold(Map.empty[String, Any])(c => Map("change" -> c, "sinceChange" -> HotKeys.sinceChange(batch)))
}
