package io.penstock.benchmarks

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeoutException

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{EvenKeys, RowCost, ServedKeys}

/**
 * Two executors whose shards change place in every batch, on a standalone cluster: batches while all sidecars are killed
 * every second, and batches while they are left alone.
 */
object Sidecars {
  private val Shards = 256
  private val KeysOfShard = 8
  private val Two = 2
  private val PatienceNs = 120L * 1000 * 1000 * 1000

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val executors = new ExecutorWatch
    spark.sparkContext.addSparkListener(executors)
    val kill = Paths.get(args.required("signals"), "kill")
    val side =
      Side.penstock("penstock", Shards, Two, Map("penstock.policy" -> "chaos(7)", "penstock.tasks" -> Two.toString))
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      Files.createFile(Paths.get(args.required("signals"), "ready"))
      executors.await(Two): Unit
      idle(Paths.get(args.required("signals")))
      val setup = new SideSetup(side, manager, Map.empty, every = 1, Comparison.checkpoints(args))
      val rows = args.int("rows", Two * 1024)
      val numbers = setup.numbers(setup.session(spark), rows, Two)
      val keys = EvenKeys(Shards, KeysOfShard)
      val query = setup.start(ServedKeys.of(numbers, keys, RowCost(1.0), setup.gate, Shards), OutputMode.Update())
      try {
        (0 until args.int("warm-up", 20)).foreach(_ => query.step(watch))
        // A sidecar that was killed often is started again later each time: killed batches come last.
        for (phase <- Seq("alone", "killed")) {
          if (phase == "killed") Files.createFile(kill): Unit
          val samples = (0 until args.int("rounds", 40)).map { _ =>
            val sample = query.step(watch)
            require(sample.stage.rows.sum == rows, s"${sample.stage.rows.sum} rows of $rows")
            sample
          }
          report.write("sidecar", query, samples, label = Map("sidecars" -> phase))
        }
      } finally query.stop()
    }
  }

  /** Waits until it is measured what sidecars use that have nothing to do. */
  private def idle(signals: Path): Unit = {
    Files.createFile(signals.resolve("idle"))
    val end = System.nanoTime() + PatienceNs
    while (!Files.exists(signals.resolve("idle-measured"))) {
      if (System.nanoTime() > end) throw new TimeoutException("idle sidecars were not measured")
      Thread.sleep(100)
    }
  }
}
