package io.penstock.benchmarks

import java.nio.file.{Files, Path, Paths}

/** One comparison from start to report: its queries live at the same time and take turns. */
object Comparison {

  /** Where checkpoints are written: below `--checkpoints`, by default below the system's folder of temporary files. */
  def checkpoints(args: Arguments): Path =
    Files.createDirectories(Paths.get(args.text("checkpoints", System.getProperty("java.io.tmpdir"))))

  /**
   * @param starts
   *   each starts one contender
   * @param extra
   *   further figures of a contender's batches, by name, from the number of the batch
   * @param cold
   *   whether nothing ran in this JVM before: then it has twice the rounds to compile in
   */
  def run(
      watch: StageWatch,
      report: Report,
      args: Arguments,
      bench: String,
      starts: Seq[() => Contender],
      extra: (Contender, Long) => Map[String, Any] = (_, _) => Map.empty,
      cold: Boolean = false
  ): Unit = {
    val contenders = starts.map(_.apply())
    try {
      val seconds = args.int("seconds", Int.MaxValue)
      val warmUp = args.int("warm-up", 10)
      if (cold) Rounds.run(contenders, watch, warmUp, 0, seconds): Unit
      val results = Rounds.run(contenders, watch, warmUp, args.int("rounds", 40), seconds)
      for ((contender, samples) <- results)
        report.write(bench, contender, samples, samples.map(s => extra(contender, s.progress.batchId)))
    } finally contenders.foreach(_.stop())
  }
}
