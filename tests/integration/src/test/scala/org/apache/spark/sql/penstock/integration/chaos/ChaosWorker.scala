package org.apache.spark.sql.penstock.integration.chaos

import java.io.{PrintWriter, StringWriter}
import java.nio.file.{Files, Path}

import scala.io.StdIn
import scala.util.control.NonFatal

import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.faults.{FaultPlan, FaultyCheckpointFileManager}

/**
 * A process with a Spark application that plays scenarios, each from the point where the process before it ended. It
 * reads the directory of a run from each input line, and answers with a line.
 *
 * Arguments: the [[WorkerKind]], a directory for the application's own files, and the Python for the planner.
 */
object ChaosWorker {
  val Ready = "chaos: ready"
  val Done = "chaos: done"
  val Failed = "chaos: failed"

  def main(args: Array[String]): Unit = {
    val application = start(WorkerKind.of(args(0)), Path.of(args(1)), args(2))
    println(Ready)
    Iterator.continually(StdIn.readLine()).takeWhile(_ != null).foreach { line =>
      val run = new RunDirectory(Path.of(line))
      try {
        play(application, run)
        if (FaultPlan.isEnding) Thread.currentThread().join()
        println(Done)
      } catch {
        case NonFatal(e) =>
          val text = new StringWriter
          e.printStackTrace(new PrintWriter(text))
          run.error = text.toString
          // The parent process should see the end, not an answer just before it.
          if (FaultPlan.isEnding) Thread.currentThread().join()
          println(Failed)
      }
    }
    application.stop()
  }

  private def start(kind: WorkerKind, directory: Path, python: String): classic.SparkSession = Applications.start(
    "chaos",
    kind.master,
    Files.createDirectories(directory.resolve("warehouse")),
    Applications.Plugin + ("spark.penstock.python" -> python) ++
      (if (kind.isCluster) LocalCluster.conf(ClassArchive.classPath, ClassArchive.inherited)
       else Map.empty) ++ kind.conf
  )

  private def play(application: classic.SparkSession, run: RunDirectory): Unit = {
    val scenario = run.scenario
    val actions = Script.actions(scenario.script)
    val faults = FaultPlan.settings(scenario.plan, run.strikes)
    val conf = scenario.settings(run.starts) ++ faults +
      (FaultyCheckpointFileManager.ClassKey -> classOf[FaultyCheckpointFileManager].getName)
    val from = run.resumeAt(at =>
      (at + 1 until actions.size).find(actions(_).isInstanceOf[Action.Trigger]).getOrElse(actions.size)
    )
    val engine =
      if (scenario.policy.nonEmpty) Engine.penstock(scenario.shards, scenario.policy)
      else Engine.penstock(scenario.shards, scenario.seed + 100L * run.starts)
    run.countStart()
    new QueryRun(
      application,
      engine.copy(conf = engine.conf ++ conf),
      scenario.operatorCase,
      run.checkpoint,
      TaskFaults.inject(faults, scenario.pauseMs),
      scenario.actions
    ).play(actions, from, run.observer, Set.empty, Map.empty)
  }
}
