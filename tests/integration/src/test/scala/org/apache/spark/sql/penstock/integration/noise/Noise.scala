package org.apache.spark.sql.penstock.integration.noise

import java.nio.file.Files
import java.util.Random

import org.apache.spark.sql.penstock.integration.harness.Applications
import org.apache.spark.util.Utils

/**
 * `make noise RUNS=200 SEED=1`. Runs queries with even keys, some of them with one expensive key, while the machine is
 * busy with other things. Arguments: the number of runs and the seed of the first run. Exits with status 1 if a run
 * took noise for load, or if more than one in ten expensive keys was found late.
 */
object Noise {
  private val Batches = 40
  private val MaxTasks = 16
  private val MaxRows = 20

  def main(args: Array[String]): Unit = {
    val (runs, first) = (args(0).toInt, args(1).toLong)
    val directory = Files.createTempDirectory("penstock-noise")
    val application = Applications.start(
      "noise",
      s"local[$MaxTasks]",
      directory.resolve("warehouse"),
      Applications.Plugin ++ Applications.FastFiles
    )
    val found = (0 until runs).map { i =>
      val run = of(first + i, Batches)
      val reports = run.play(application, directory.resolve(s"checkpoint-$i"))
      val wrong = run.contradictions(reports)
      val moved = reports.drop(5).map(_.moved).sum
      println(
        s"$run: ${if (wrong.isEmpty) "well" else wrong.mkString("; ")}, $moved shards moved after the fifth batch"
      )
      run -> wrong
    }
    application.stop()
    Utils.deleteRecursively(directory.toFile)
    val (expensive, even) = found.partition(_._1.hasExpensiveKey)
    val (late, wrong) = (expensive.count(_._2.nonEmpty), even.count(_._2.nonEmpty))
    println(
      s"noise was taken for load in $wrong of ${even.size} runs, an expensive key found late in $late of ${expensive.size}"
    )
    sys.exit(if (wrong > 0 || late * 10 > expensive.size) 1 else 0)
  }

  /** The run of a seed. */
  def of(seed: Long, batches: Int): NoisyRun = {
    val random = new Random(seed * 31 + 7)
    val tasks = 2 + random.nextInt(MaxTasks - 1)
    val rows = 1 + random.nextInt(MaxRows)
    NoisyRun(seed, tasks, rows, random.nextInt(4) == 0, Disturbance.All((seed % Disturbance.All.size).toInt), batches)
  }
}
