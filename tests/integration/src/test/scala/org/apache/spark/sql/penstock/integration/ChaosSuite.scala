package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.chaos._
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.faults.Fault
import org.scalatest.funsuite.AnyFunSuite

/**
 * Random scenarios in which tasks fail, files cannot be written, and drivers and executors are killed. Another scenario
 * kills the driver at every step of a batch. `make chaos` runs more scenarios.
 */
class ChaosSuite extends AnyFunSuite with TestDirectory {
  private val runsPerTest = Brief.orElse(2, 3)
  private lazy val runs = new ChaosRuns(directory, line => note(line))

  override protected def afterAll(): Unit =
    try runs.close()
    finally super.afterAll()

  test("random scenarios give plain Spark's rows") {
    val found = (0 until runsPerTest).flatMap(i => runs.run(Chaos.firstOf(TestSeed.base) + i))
    assert(found.isEmpty, found.mkString("\n"))
    assert(runs.struck >= runsPerTest / 2, "too few faults have struck for the runs to be meaningful")
  }

  if (!Brief.isOn) test("a query survives a driver killed at every step of writing a batch's files") {
    val moments = Seq(Fault.Create, Fault.Publish, Fault.Published)
    val kills = for {
      (place, number) <- Seq("offsets", "manifests", "changelogs", "commits").zipWithIndex
      (moment, index) <- moments.zipWithIndex
    } yield Fault(moment, place, Some(number * moments.size + index.toLong), Fault.Die)
    val first =
      moments.map(Fault(_, "epochs", Some(0L), Fault.Die)) ++ moments.map(Fault(_, "_penstock", None, Fault.Die))
    val scenario = Scenario(
      TestSeed.base,
      "aggregation, update",
      cluster = false,
      twice = false,
      shards = 8,
      policy = "",
      Map(
        "spark.penstock.state.inlineBytes" -> "0",
        "test.faults.delegate" -> "io.penstock.LocalCheckpointFileManager"
      ),
      (0 to kills.size).map(i => s"feed $i 40 0"),
      (first ++ kills).map(_.toString),
      otherSettings = true
    )
    val (before, pinnedBefore) = (runs.deaths, runs.pinned)
    assert(runs.run("every step", scenario).isEmpty)
    assert(runs.deaths - before == scenario.faults.size)
    // No key can be pinned before the first batch, in which six of the faults strike.
    assert(runs.pinned - pinnedBefore >= kills.size / 2, "deaths while keys were pinned")
  }
}
