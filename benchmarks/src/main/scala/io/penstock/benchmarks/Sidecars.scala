package io.penstock.benchmarks

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeoutException

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{EvenKeys, RowCost, ServedKeys}

/**
 * Two executors on a standalone cluster, whose shards change executor in every batch: batches with undisturbed transfer
 * sidecars, and batches while all sidecars are killed every second.
 */
object Sidecars {
  private val Shards = 256
  private val KeysOfShard = 8
  private val Two = 2
  private val TimeoutNs = 120L * 1000 * 1000 * 1000

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
        // Each restart of a killed sidecar is delayed longer than the one before, so the phase with kills is the last.
        for (phase <- Seq("alone", "killed")) {
          if (phase == "killed") Files.createFile(kill): Unit
          val samples = (0 until args.int("rounds", 40)).map { _ =>
            val sample = query.step(watch)
            require(sample.stage.rows.sum == rows, s"the batch has ${sample.stage.rows.sum} rows, expected $rows")
            sample
          }
          report.write("sidecar", query, samples, label = Map("sidecars" -> phase))
        }
      } finally query.stop()
    }
  }

  /** Waits until `penstock bench` has measured the idle sidecars. */
  private def idle(signals: Path): Unit = {
    Files.createFile(signals.resolve("idle"))
    val end = System.nanoTime() + TimeoutNs
    while (!Files.exists(signals.resolve("idle-measured"))) {
      if (System.nanoTime() > end) throw new TimeoutException("the idle sidecars were not measured within 120 s")
      Thread.sleep(100)
    }
  }
}
