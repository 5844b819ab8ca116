package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path}

import org.apache.spark.sql.penstock.integration.cases.Matrix
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.faults.Fault
import org.json4s.jackson.Serialization
import org.json4s.{DefaultFormats, Formats}

/**
 * A query, what is done with it, and what goes wrong meanwhile. All of it is text and numbers, so that it can be printed,
 * given to another process, and made smaller.
 *
 * @param seed
 *   of the rows, of the numbers of tasks and of the bindings
 * @param query
 *   name of a case of the operator matrix
 * @param cluster
 *   executors are processes of their own
 * @param twice
 *   at first two applications run the query at the same time, on one checkpoint
 * @param policy
 *   what places shards; at random where it is empty
 * @param conf
 *   session settings of the run with Penstock
 * @param steps
 *   `feed <number> <rows left> <rows right>`, `idle`, `restart`; event time goes on with the number
 * @param faults
 *   each as `io.penstock.faults.Fault` reads it
 * @param actions
 *   of the foreachBatch function on each batch
 * @param pauseMs
 *   at each row of actions in which processes are to end in an orderly way
 * @param speculation
 *   tasks are run twice; in a cluster only
 * @param otherSettings
 *   beside those of `conf` each start has settings of its own, as [[StartSettings]] gives them
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

  /** Of the application that is to play it. */
  def kind: WorkerKind = if (!cluster) WorkerKind.Local else WorkerKind.Cluster(speculation)

  /** Session settings of a start, of which the first is 0. */
  def settings(start: Int): Map[String, String] =
    if (otherSettings) StartSettings.of(seed, start) ++ conf else conf

  def plan: Seq[Fault] = faults.map(Fault.parse)

  def script: Seq[Step] = steps.map(_.split(' ') match {
    case Array("feed", number, left, right) =>
      // By number, so that the rows of one input stay when another is left out.
      def input(rows: String, side: Int) =
        new EventGenerator(seed * 1000 + number.toLong * 2 + side).input(number.toInt, rows.toInt)
      Step.Feed(input(left, 0), if (operatorCase.twoInputs) input(right, 1) else Nil)
    case Array("idle") => Step.Idle
    case Array("restart") => Step.Restart
    case other => throw new IllegalArgumentException(s"'${other.mkString(" ")}' is no step")
  })

  def write(file: Path): Unit = Files.writeString(file, Serialization.write(this)(Scenario.formats)): Unit

  override def toString: String = Serialization.write(this)(Scenario.formats)
}

object Scenario {
  private val formats: Formats = DefaultFormats

  def read(file: Path): Scenario = Serialization.read[Scenario](Files.readString(file))(formats, manifest[Scenario])
}
