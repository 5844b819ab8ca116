package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path}

import org.apache.spark.sql.penstock.integration.cases.Matrix
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.faults.Fault
import org.json4s.jackson.Serialization
import org.json4s.{DefaultFormats, Formats}

/**
 * A query, the steps that it goes through, and the faults that strike it. Consists of texts and numbers only, so that
 * it can be printed, passed to another process, and reduced.
 *
 * @param seed
 *   Seed of the rows, of the numbers of tasks and of the bindings
 * @param query
 *   Name of a case of the operator matrix
 * @param cluster
 *   Whether executors run in separate processes
 * @param twice
 *   Whether two applications run the query at the same time at first, on one checkpoint
 * @param policy
 *   Policy that places shards; empty for random places
 * @param conf
 *   Session settings of the run with Penstock
 * @param steps
 *   `feed <number> <rows left> <rows right>`, `idle` or `restart`; event time increases with the number
 * @param faults
 *   Faults as text that `io.penstock.faults.Fault` reads
 * @param actions
 *   Number of actions of the foreachBatch function on each batch
 * @param pauseMs
 *   Pause at each row of actions in which processes end in an orderly way
 * @param speculation
 *   Whether tasks run twice, which is possible in a cluster only
 * @param otherSettings
 *   Whether each start has its own settings in addition to `conf`, see [[StartSettings]]
 */
final case class Scenario(
    seed: Long,
    query: String,
    cluster: Boolean,
    twice: Boolean,
    shards: Int,
    policy: String,
    conf: Map[String, String],
    steps: Seq[String],
    faults: Seq[String],
    actions: Int = 1,
    pauseMs: Int = 0,
    speculation: Boolean = false,
    otherSettings: Boolean = false
) {
  def operatorCase: OperatorCase = Matrix.all
    .find(_.name == query)
    .getOrElse(throw new IllegalArgumentException(s"there is no case '$query' in the operator matrix"))

  /** Kind of the application that plays the scenario. */
  def kind: WorkerKind = if (!cluster) WorkerKind.Local else WorkerKind.Cluster(speculation)

  /** Session settings of a start. The first start is 0. */
  def settings(start: Int): Map[String, String] =
    if (otherSettings) StartSettings.of(seed, start) ++ conf else conf

  def plan: Seq[Fault] = faults.map(Fault.parse)

  def script: Seq[Step] = steps.map(_.split(' ') match {
    case Array("feed", number, left, right) =>
      // Rows depend on the number, so that they stay the same when another input is left out.
      def input(rows: String, side: Int) =
        new EventGenerator(seed * 1000 + number.toLong * 2 + side).input(number.toInt, rows.toInt)
      Step.Feed(input(left, 0), if (operatorCase.twoInputs) input(right, 1) else Nil)
    case Array("idle") => Step.Idle
    case Array("restart") => Step.Restart
    case other => throw new IllegalArgumentException(
        s"'${other.mkString(" ")}' is not a step; allowed: feed <number> <rows left> <rows right>, idle, restart"
      )
  })

  def write(file: Path): Unit = Files.writeString(file, Serialization.write(this)(Scenario.formats)): Unit

  override def toString: String = Serialization.write(this)(Scenario.formats)
}

object Scenario {
  private val formats: Formats = DefaultFormats

  def read(file: Path): Scenario = Serialization.read[Scenario](Files.readString(file))(formats, manifest[Scenario])
}
