package io.penstock.benchmarks

import java.nio.file.{Files, Paths}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{EvenKeys, RowCost, ServedKeys}

/**
 * An executor joins four busy executors on a standalone cluster. Each has one core. Plain Spark has as many partitions
 * as there are cores at the start.
 */
object JoinExecutor {
  private val Shards = 256
  private val KeysOfShard = 8
  private val Few = 4

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val executors = new ExecutorWatch
    spark.sparkContext.addSparkListener(executors)
    val keys = EvenKeys(Shards, KeysOfShard)
    val sides = Seq(Side.hdfs(Few).copy(name = "plain"), Side.penstock("penstock", Shards, Few))
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      // The file requests the first executors. They start now because the listener must see them being added.
      Files.createFile(Paths.get(args.required("signals"), "ready"))
      val before = executors.await(Few)
      val contenders = for (side <- sides if args.wants(side)) yield {
        val setup = new SideSetup(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
        val numbers = setup.numbers(setup.session(spark), args.int("rows", Few * 2048), Few)
        setup.start(ServedKeys.of(numbers, keys, RowCost(1.0), setup.gate, Shards), OutputMode.Update())
      }
      try {
        (0 until args.int("warm-up", 6)).foreach(_ => contenders.foreach(_.step(watch)))
        Files.createFile(Paths.get(args.required("signals"), "join"))
        executors.await(Few + 1): Unit
        val results = Rounds.take(contenders, 0, args.int("rounds", 10), args.int("seconds", Int.MaxValue))(_.every) {
          c =>
            c.step(watch, tasks = if (c.side.mode == "off") Few else Few + 1)
        }
        for ((contender, samples) <- results)
          report.write(
            "join-executor",
            contender,
            samples,
            samples.map(s => Map("newcomer" -> shareOf(s.stage, before)))
          )
      } finally contenders.foreach(_.stop())
    }
  }

  /** Share of a stage's rows that were processed by executors that are not in `before`. */
  private def shareOf(stage: StageWatch.Stage, before: Set[String]): Double =
    stage.rows.zip(stage.executors).collect { case (rows, e) if !before(e) => rows }.sum.toDouble / stage.rows.sum
}
