package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path}

import scala.util.Using

import org.apache.spark.util.Utils

/**
 * `make chaos RUNS=200 SEED=1`. Arguments are the number of runs and the seed of the first run, which the others' seeds
 * follow, or the file of one scenario. Exits with status 1 if a run found a problem.
 */
object Chaos {
  private val ManyRuns = 20
  private val TrainingRuns = 5

  def main(args: Array[String]): Unit = {
    val directory = Files.createTempDirectory("penstock-chaos")
    val found = Using.resource(new ChaosRuns(directory, println)) { runs =>
      val problems = args match {
        case Array(scenario) => runs.run(scenario, Scenario.read(Path.of(scenario))).toSeq
        case Array(count, seed) =>
          val seeds = Seq.tabulate(count.toInt)(firstOf(seed.toLong) + _)
          if (seeds.size >= ManyRuns) runs.train(seeds.take(TrainingRuns))
          seeds.flatMap(runs.run)
        case _ => throw new IllegalArgumentException("arguments: <runs> <seed>, or <file of a scenario>")
      }
      println(
        s"${runs.struck} faults struck, ${runs.deaths} processes died, ${runs.failures} queries failed, " +
          s"${runs.pinned} of both when keys were pinned"
      )
      problems
    }
    found.foreach(println)
    println(if (found.isEmpty) "every batch of every run equals plain Spark's" else s"${found.size} runs are WRONG")
    if (found.isEmpty) Utils.deleteRecursively(directory.toFile)
    sys.exit(if (found.isEmpty) 0 else 1)
  }

  /** First seed for a base. The seeds of different bases do not overlap. */
  def firstOf(base: Long): Long = base * 1000000L
}
