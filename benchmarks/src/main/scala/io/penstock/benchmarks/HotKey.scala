package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{HotKeys, RowCost, ServedKeys}

/**
 * One key rises to 60 % of what a task can do, then another does instead of it: alone in its shard, which fits beside
 * others, and beside a key that has half of what a task can do, so that their shard is more than a task's share.
 */
object HotKey {
  private val Shards = 256
  private val HotShare = 0.6
  private val NeighbourShare = 0.5

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val rows = args.int("rows", tasks * 1000)
    val keys = args.int("keys", 10000)
    // Nobody waits to know how plain Spark does in each run.
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
