package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{RowCost, ServedKeys, WhoRan, Zipf}

/**
 * Measures the gain of binding at the barrier: skewed keys, one millisecond of waiting per row, sixteen tasks. The hot
 * keys are always the same, or others in every batch.
 */
object Barrier {
  private val Shards = 256

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val sides = Seq(
      Side.hdfs(tasks).copy(name = "plain"),
      Side.penstock("static", Shards, tasks, Map("penstock.policy" -> "static")),
      Side.penstock("sticky", Shards, tasks, Map("penstock.policy" -> "hybrid", "penstock.theta" -> "1.05"))
    )
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for (moving <- Seq(false, true); side <- sides if args.wants(side)) yield () => {
        val setup = new SideSetup(side, manager, Map("hot" -> name(moving)), every = 1, Comparison.checkpoints(args))
        val rows = args.int("rows", tasks * 5000)
        val numbers = setup.numbers(setup.session(spark), rows, args.int("map-tasks", 8))
        val zipf = Zipf(args.int("keys", 10000), 0.85, if (moving) rows.toLong else 0L)
        setup.start(ServedKeys.of(numbers, zipf, RowCost(1.0), setup.gate, Shards), OutputMode.Update())
      }
      Comparison.run(
        watch,
        report,
        args,
        "barrier",
        starts,
        (c, batch) => WhoRan.moved(c.gate, batch).map("moved" -> _).toMap
      )
    }
  }

  private def name(moving: Boolean) = if (moving) "moving" else "fixed"
}
