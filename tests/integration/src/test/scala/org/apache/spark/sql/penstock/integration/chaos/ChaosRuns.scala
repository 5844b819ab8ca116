package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path}

import org.apache.spark.sql.penstock.integration.harness.Applications

/** Runs random scenarios one after the other. A scenario that finds a problem is reduced and saved. */
final class ChaosRuns(directory: Path, say: String => Unit) extends AutoCloseable {
  private val application =
    Applications.start("reference", "local[2,4]", directory.resolve("warehouse"), Applications.FastFiles)
  private val workers = new Workers(directory, new ClassArchive(directory))
  private val runner = new ScenarioRunner(application, workers, directory)
  private val shrinkAttempts = 40

  /**
   * Totals of all runs: faults that struck, processes that died, queries that failed, and deaths or failures with
   * pinned keys.
   */
  var struck, deaths, failures, pinned = 0

  /** Makes later processes start faster. Takes as long as two runs. */
  def train(seeds: Seq[Long]): Unit = workers.train(seeds.map(Scenarios.of))

  /** Runs the scenario of a seed and returns the problem, if it finds one. */
  def run(seed: Long): Option[String] = run(s"seed $seed", Scenarios.of(seed))

  /** Runs a scenario and returns the problem, if it finds one. */
  def run(name: String, scenario: Scenario): Option[String] = {
    val started = System.nanoTime()
    val outcome = runner.run(scenario)
    struck += outcome.ends.struck
    deaths += outcome.ends.deaths
    failures += outcome.ends.failures
    pinned += outcome.ends.pinned
    val seconds = (System.nanoTime() - started) / 1000000000L
    say(
      s"$name: ${if (outcome.finding.isEmpty) "equal" else "WRONG"}, ${outcome.ends.struck} of ${scenario.faults.size} " +
        s"faults struck, ${outcome.ends.deaths} died, ${outcome.ends.failures} failed, $seconds s: ${scenario.query}" +
        s"${if (scenario.cluster) s", on a ${scenario.kind}" else ""}" +
        s"${if (scenario.twice) ", by two applications at first" else ""}" +
        s"${if (scenario.actions > 1) s", ${scenario.actions} actions" else ""}" +
        s"${if (scenario.policy.isEmpty) "" else s", policy ${scenario.policy}"}; ${scenario.faults.mkString(", ")}"
    )
    outcome.finding.map { finding =>
      say(s"$name: $finding\nits files: ${outcome.left}\nmaking it smaller ...")
      val small = Shrinker.shrink(scenario, shrinkAttempts)(runner.run(_).finding.exists(_.kind == finding.kind))
      val file = Files.createTempFile("penstock-chaos", ".json")
      small.write(file)
      s"$name: $finding\nThe smallest scenario that fails in this way, again with `make chaos SCENARIO=$file`:\n$small"
    }
  }

  override def close(): Unit = {
    workers.close()
    application.stop()
  }
}
