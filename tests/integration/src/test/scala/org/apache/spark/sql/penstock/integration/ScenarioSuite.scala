package org.apache.spark.sql.penstock.integration

import java.nio.file.Files

import org.apache.spark.sql.penstock.integration.chaos.{Scenario, Scenarios, Shrinker}
import org.apache.spark.sql.penstock.integration.harness.TestDirectory

import io.penstock.faults.Fault
import org.scalatest.funsuite.AnyFunSuite

/** Scenario files: those of earlier versions can be read, and written scenarios read back. */
class ScenarioSuite extends AnyFunSuite with TestDirectory {
  private val seeds = 0L until 500L

  private def read(text: String): Scenario =
    Scenario.read(Files.writeString(newDirectory("scenario").resolve("file"), text))

  test("a file without actions and speculation has one action and no speculation") {
    val old = read(
      """{"seed":7,"query":"aggregation, update","cluster":true,"twice":false,"shards":4,"policy":"static",""" +
        """"conf":{"a.b":"1"},"steps":["feed 0 5 3","restart","idle"],"faults":["publish manifests/3 die"]}"""
    )
    assert((old.actions, old.pauseMs, old.speculation, old.otherSettings) == ((1, 0, false, false)))
    assert(old.plan == Seq(Fault(Fault.Publish, "manifests", Some(3L), Fault.Die)))
    assert(old.kind.isCluster && old.steps.size == 3 && old.conf == Map("a.b" -> "1"))
  }

  test("a written scenario reads back") {
    seeds.map(Scenarios.of).foreach { scenario =>
      assert(read(scenario.toString) == scenario)
      assert(scenario.plan.map(_.toString) == scenario.faults)
    }
  }

  test("scenarios include several actions, speculation, and orderly ends in further actions") {
    val all = seeds.map(Scenarios.of)
    assert(all.map(_.actions).toSet == Set(1, 2, 3))
    assert(all.filter(_.speculation).forall(_.cluster) && all.count(_.speculation) > 20)
    def endsLate(f: Fault) = f.effect.isInstanceOf[Fault.EndOrderly] && Set("2", "3")(f.place)
    assert(all.count(s => s.cluster && s.plan.exists(endsLate)) > 10)
  }

  test("starts differ in their settings only in scenarios that ask for it") {
    val (other, same) = seeds.map(Scenarios.of).partition(_.otherSettings)
    assert(other.size > 200 && same.size > 200)
    assert(other.forall(s => (0 to 5).map(s.settings).toSet.size > 1))
    assert(same.forall(s => (0 to 5).map(s.settings).toSet == Set(s.conf)))
  }

  test("a smaller scenario has fewer actions, or no speculation") {
    val scenario = seeds.map(Scenarios.of).find(s => s.actions == 3 && s.speculation).get
    val smaller = Shrinker.smaller(scenario)
    assert(smaller.exists(_.actions == 2) && smaller.exists(s => !s.speculation && s.cluster))
  }
}
