package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path}

import scala.annotation.tailrec
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration.Duration
import scala.concurrent.{Await, Future}

import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.util.Utils

import io.penstock.faults.FaultPlan

/**
 * Plays a scenario with Penstock and its steps without the faults with plain Spark, and compares every batch.
 *
 * Dead processes and failed queries are started again, as an operator would do. This requires that a fault of the
 * scenario has struck since the previous start. Otherwise the error is a finding.
 */
final class ScenarioRunner(application: classic.SparkSession, workers: Workers, directory: Path) {
  import ScenarioRunner._

  def run(scenario: Scenario): Outcome = {
    val root = Files.createTempDirectory(directory, "run")
    val run = new RunDirectory(root)
    run.scenario = scenario
    val second = Option.when(scenario.twice)(workers.second)
    val intruder = second.map(process => Future(process.play(run)))
    val (ends, early) = playToTheEnd(scenario, run, intruder)
    val found = early
      .orElse(difference(scenario, run).map(Finding(Finding.OtherRows, _)))
      .orElse(Inspection.contradiction(run.checkpoint, scenario.seed).map(Finding(Finding.BadCheckpoint, _)))
    if (found.isEmpty) Utils.deleteRecursively(root.toFile)
    Outcome(found, ends, root)
  }

  @tailrec
  private def playToTheEnd(
      scenario: Scenario,
      run: RunDirectory,
      intruder: Option[Future[WorkerProcess.Answer]],
      deaths: Int = 0,
      failures: Int = 0,
      pinned: Int = 0
  ): (Ends, Option[Finding]) = {
    def struck = FaultPlan.struck(run.strikes)
    def ended(finding: Option[Finding]) = (Ends(deaths, failures, struck.size, pinned), finding)
    def found(kind: Finding.Kind, detail: Any) = ended(Some(Finding(kind, detail.toString)))
    val before = struck
    val beside = intruder.exists(!_.isCompleted)
    val answer = workers.first(scenario.kind).play(run)
    // From here on only one application runs the query.
    val second = intruder.map(Await.result(_, Duration.Inf))
    def withPins = pinned + (if (PinnedKeys.count(run.checkpoint) > 0) 1 else 0)
    def noReason = struck == before && !beside
    (answer, second) match {
      case (WorkerProcess.Hung(threads), _) => found(Finding.Hangs, threads)
      case (_, Some(WorkerProcess.Hung(threads))) => found(Finding.Hangs, s"the second application: $threads")
      case (WorkerProcess.Finished(ChaosWorker.Done), _) => ended(None)
      case (WorkerProcess.Finished(_), _) if noReason => found(Finding.FailsForNoReason, run.error)
      case (WorkerProcess.Died(log), _) if noReason => found(Finding.DiesForNoReason, log)
      case (WorkerProcess.Finished(_), _) => playToTheEnd(scenario, run, intruder, deaths, failures + 1, withPins)
      case (WorkerProcess.Died(_), _) => playToTheEnd(scenario, run, intruder, deaths + 1, failures, withPins)
    }
  }

  /** Compares every batch. If the reference has no rows, the run must have none. */
  private def difference(scenario: Scenario, run: RunDirectory): Option[String] = {
    val expected = reference(scenario, run)
    def rows(result: RunResult) = result.batches.valuesIterator.flatten.flatten
    if (rows(expected).isEmpty) rows(run.result).nextOption().map(row => s"no rows expected, found $row")
    else BatchComparison.difference(expected, run.result, scenario.operatorCase.equivalence)
  }

  private def reference(scenario: Scenario, run: RunDirectory): RunResult = {
    val checkpoint = Files.createTempDirectory(directory, "reference")
    try
      new QueryRun(
        application,
        Engine.stock(scenario.operatorCase.stock, 3),
        scenario.operatorCase,
        checkpoint
      ).play(scenario.script, run.startedAfresh, run.doneAgain)
    finally Utils.deleteRecursively(checkpoint.toFile)
  }
}

object ScenarioRunner {

  /**
   * How the starts of a scenario ended.
   *
   * @param deaths
   *   Number of processes that died
   * @param failures
   *   Number of queries that failed
   * @param struck
   *   Number of faults that struck
   * @param pinned
   *   Number of deaths and failures while keys were pinned
   */
  final case class Ends(deaths: Int, failures: Int, struck: Int, pinned: Int)

  /**
   * @param finding
   *   Problem that the run has found, if any
   * @param left
   *   Directory with all files of the run; deleted if no problem was found
   */
  final case class Outcome(finding: Option[Finding], ends: Ends, left: Path)
}
