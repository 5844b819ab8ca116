package io.penstock.benchmarks

import java.nio.file.{Files, Path, Paths}

/** A comparison from start to report. Its queries exist at the same time and take turns. */
object Comparison {

  /** Folder for checkpoints: `--checkpoints`, or the system's folder for temporary files. */
  def checkpoints(args: Arguments): Path =
    Files.createDirectories(Paths.get(args.text("checkpoints", System.getProperty("java.io.tmpdir"))))

  /**
   * Runs a comparison and reports its samples.
   *
   * @param starts
   *   functions that start a contender each
   * @param extra
   *   additional figures of a contender's batch by name, given the number of the batch
   * @param cold
   *   whether nothing ran in this JVM before. Then the warm-up is twice as long, because the JVM has more to compile
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
