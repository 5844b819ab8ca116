package io.penstock.benchmarks

import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders, SparkSession}

import io.penstock.benchmarks.work.{Service, WhoRan, Zipf}

/**
 * What binding at the barrier gains: one millisecond of waiting a row, skewed keys, sixteen tasks. Hot keys stay, or
 * move in every batch.
 */
object Barrier {
  private val Shards = 256
  private val RowNs = 1000000L
  private val longs: Encoder[Long] = Encoders.scalaLong

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val sides = Seq(
      Side.hdfs(tasks).copy(name = "plain"),
      Side.penstock("static", Shards, tasks, Map("penstock.policy" -> "static")),
      Side.penstock("sticky", Shards, tasks, Map("penstock.policy" -> "hybrid"))
    )
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val starts = for (moving <- Seq(false, true); side <- sides if args.wants(side)) yield () => {
        val lane = new Lane(side, manager, Map("hot" -> name(moving)), every = 1, Comparison.checkpoints(args))
        val rows = args.int("rows", tasks * 5000)
        val numbers = lane.numbers(lane.session(spark), rows, args.int("map-tasks", 8))
        lane.start(
          served(numbers, Zipf(args.int("keys", 10000), 0.85, if (moving) rows.toLong else 0L), lane.gate),
          OutputMode.Update()
        )
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

  private def served(numbers: DataFrame, zipf: Zipf, run: String): DataFrame = {
    val shards = Shards
    numbers
      .as[Long](longs)
      .map((row: Long) => zipf.key(row))(longs)
      .groupByKey((k: Long) => k)(longs)
      .flatMapGroupsWithState[Long, Long](OutputMode.Update(), GroupStateTimeout.NoTimeout()) {
        (k: Long, rows: Iterator[Long], state: GroupState[Long]) =>
          WhoRan.note(run, k, shards)
          val n = rows.size
          Service.serve(n * RowNs)
          state.update(state.getOption.getOrElse(0L) + n)
          Iterator(k)
      }(longs, longs)
      .toDF("k")
  }
}
