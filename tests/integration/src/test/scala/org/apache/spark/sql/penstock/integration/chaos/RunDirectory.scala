package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path, StandardCopyOption, StandardOpenOption}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.penstock.integration.harness.{QueryRun, RunObserver, RunResult}

import io.penstock.Patience
import org.json4s.jackson.Serialization
import org.json4s.{DefaultFormats, Formats}
import org.scalatest.time.{Seconds, Span}

/** The files of a scenario's run, from which the next process can continue after one has ended. */
final class RunDirectory(val root: Path) {
  implicit private val formats: Formats = DefaultFormats

  val checkpoint: Path = root.resolve("checkpoint")
  val strikes: Path = Files.createDirectories(root.resolve("strikes"))
  private val deliveries = Files.createDirectories(root.resolve("deliveries"))
  private val started = Files.createDirectories(root.resolve("started"))
  private val scenarioFile = root.resolve("scenario.json")
  private val positionFile = root.resolve("position")
  private val freshFile = root.resolve("started-afresh")
  private val redoneFile = root.resolve("done-again")
  private val startsFile = root.resolve("starts")
  private val errorFile = root.resolve("error")

  def scenario: Scenario = Scenario.read(scenarioFile)

  def scenario_=(s: Scenario): Unit = s.write(scenarioFile)

  /** How often a process has started to play the scenario. */
  def starts: Int = if (Files.exists(startsFile)) Files.readString(startsFile).toInt else 0

  def countStart(): Unit = Files.writeString(startsFile, (starts + 1).toString): Unit

  /**
   * Triggers that were replaced by the start of a process without an unfinished batch. The reference needs them,
   * because Spark runs a batch without data for a moved watermark, but not as the first batch of a run.
   */
  def startedAfresh: Set[Int] =
    if (Files.exists(freshFile)) Files.readAllLines(freshFile).asScala.map(_.toInt).toSet else Set.empty

  /**
   * Triggers whose batch a later run had to finish, with the batches. The reference needs them, because a run knows
   * only the part of each input that it has seen itself, and the common watermark of several inputs may move later.
   */
  def doneAgain: Map[Int, Long] =
    if (!Files.exists(redoneFile)) Map.empty
    else Files.readAllLines(redoneFile).asScala.map(_.split(' ')).map(line => line(0).toInt -> line(1).toLong).toMap

  /**
   * The trigger to start with: the one at which the previous run ended, or the next one if its batch was committed.
   *
   * @param next
   *   Function from a trigger to the following one
   */
  def resumeAt(next: Int => Int): Int =
    position.fold(0) { case (trigger, committedBefore) =>
      val at = if (newestCommit > committedBefore) next(trigger) else trigger
      QueryRun.logged(checkpoint, "offsets").lastOption.filter(_ > newestCommit) match {
        case Some(pending) => append(redoneFile, s"$at $pending")
        case None => append(freshFile, at.toString)
      }
      at
    }

  val observer: RunObserver = new RunObserver {
    // If two applications run, the first one to reach the trigger records it.
    override def beforeTrigger(index: Int): Unit = {
      if (scenario.twice && index > 0) bothHaveStarted
      if (position.forall(_._1 < index)) write(positionFile, s"$index $newestCommit")
    }

    override def delivered(batch: Long, rows: Seq[String]): Unit =
      write(deliveries.resolve(s"$batch-${ProcessHandle.current.pid}-${System.nanoTime()}"), Serialization.write(rows))
  }

  /** All deliveries of all batches. */
  def result: RunResult = {
    val all = Using.resource(Files.list(deliveries))(_.iterator.asScala.filterNot(isTemporary).toSeq)
    val batches = all.groupMap(_.getFileName.toString.takeWhile(_.isDigit).toLong)(f =>
      Serialization.read[Seq[String]](Files.readString(f))
    )
    RunResult(batches, Nil)
  }

  def error: String = if (Files.exists(errorFile)) Files.readString(errorFile) else "no error was written"

  def error_=(text: String): Unit = Files.writeString(errorFile, text): Unit

  /** Waits until both applications have started the query, or the other one has had enough time. */
  private lazy val bothHaveStarted: Unit = {
    write(started.resolve(ProcessHandle.current.pid.toString), "")
    Patience.holdsWithin(RunDirectory.EnoughTime)(started.toFile.list.count(_.forall(_.isDigit)) >= 2): Unit
  }

  /** The trigger that was tried last, and the newest batch that was committed before it. */
  private def position: Option[(Int, Long)] = Option.when(Files.exists(positionFile)) {
    val numbers = Files.readString(positionFile).split(' ')
    (numbers(0).toInt, numbers(1).toLong)
  }

  private def newestCommit: Long = QueryRun.committed(checkpoint).lastOption.getOrElse(-1L)

  private def append(file: Path, line: String): Unit =
    Files.writeString(file, s"$line\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND): Unit

  /** A process may end in the middle of a write. */
  private def write(file: Path, text: String): Unit = {
    val temporary = file.resolveSibling(s".${file.getFileName}-${ProcessHandle.current.pid}")
    Files.writeString(temporary, text)
    Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE): Unit
  }

  private def isTemporary(file: Path): Boolean = file.getFileName.toString.startsWith(".")
}

object RunDirectory {
  private val EnoughTime = Span(20, Seconds)
}
