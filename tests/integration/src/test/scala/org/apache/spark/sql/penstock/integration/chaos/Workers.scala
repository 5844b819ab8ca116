package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path}

/**
 * The running workers. Usually one plays, because two cores are busy with one Spark application and the reference.
 * Meanwhile a spare one starts, to replace it when it dies.
 */
final class Workers(directory: Path, archive: ClassArchive) extends AutoCloseable {
  import Workers._

  private var one, other = Option.empty[Running]
  private var spare = Option.empty[WorkerProcess]

  /** A worker of the wanted kind. A worker that has died or played long enough is replaced. */
  def first(kind: WorkerKind): WorkerProcess = {
    one = Some(fresh(one, kind))
    one.get.process
  }

  /** A second worker that plays the same scenario at the same time. */
  def second: WorkerProcess = {
    other = Some(fresh(other, WorkerKind.Local))
    other.get.process
  }

  private def fresh(running: Option[Running], kind: WorkerKind): Running = {
    val usable = running.filter(r => r.kind == kind && r.process.isAlive && r.plays < kind.maxPlays)
    if (usable.isEmpty) running.foreach(_.process.close())
    usable.getOrElse(Running(kind, if (kind.isCluster) start(kind) else takeSpare(), plays = 0)).again
  }

  private def takeSpare(): WorkerProcess = {
    val taken = spare.getOrElse(start(WorkerKind.Local))
    spare = Some(start(WorkerKind.Local))
    taken
  }

  private def start(kind: WorkerKind, options: Seq[String] = archive.options) =
    new WorkerProcess(kind, newDirectory(), options)

  /** Creates the class archive from the classes that a process loads while it plays some scenarios. */
  def train(scenarios: Seq[Scenario]): Unit = archive.make { options =>
    val process = start(WorkerKind.Local, options)
    scenarios.foreach { scenario =>
      val run = new RunDirectory(newDirectory())
      run.scenario = scenario.copy(cluster = false, twice = false, faults = Nil)
      process.play(run)
    }
    process.end()
  }

  private def newDirectory(): Path = Files.createTempDirectory(directory, "worker")

  override def close(): Unit = ((one ++ other).map(_.process) ++ spare).foreach(_.close())
}

object Workers {

  final private case class Running(kind: WorkerKind, process: WorkerProcess, plays: Int) {
    def again: Running = copy(plays = plays + 1)
  }
}
