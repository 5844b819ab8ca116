package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.harness.Night
import org.apache.spark.sql.penstock.integration.soak._

import io.penstock.conf.Settings
import org.scalatest.funsuite.AnyFunSuite

/** A short soak, which `make nightly` runs. `make soak` takes half an hour, and also runs with large state. */
class SoakSuite extends AnyFunSuite {
  private val seconds = 60

  if (Night.isOn) test("memory, threads, descriptors and files do not grow") {
    val grows = Soak.run(seconds, keys = 20000L, valueBytes = 50, line => info(line))
    assert(grows.isEmpty, grows.mkString("\n"))
  }

  test("the soak with slow snapshots uses valid settings") {
    Settings.checkApplication(SlowSnapshotFiles.Settings)
  }

  test("growth is detected, and noise is not taken for growth") {
    val quantity = Flatness("things", 0.05, 3)
    val level = (0 until 30).map(i => 100.0 + i % 4)
    assert(quantity.contradiction(level).isEmpty)
    assert(quantity.contradiction(level.updated(25, 500.0)).isEmpty)
    assert(quantity.contradiction((0 until 30).map(i => if (i < 10) i * 10.0 else 100.0)).isEmpty)
    // Periods of seven samples, in which the level of a third depends on where it begins.
    def sawtooth(start: Int) = (0 until 60).map(i => 100.0 + 10 * ((i + start) % 7))
    (0 until 7).foreach(start => assert(quantity.contradiction(sawtooth(start)).isEmpty))
    assert(
      quantity.contradiction(sawtooth(0).zipWithIndex.map { case (v, i) => v + 2 * i }).exists(_.contains("grows"))
    )
    assert(quantity.contradiction((0 until 30).map(100.0 + _)).exists(_.contains("things grows")))
    assert(quantity.contradiction((0 until 30).map(_ * 0.5)).exists(_.contains("grows")))
    assertThrows[IllegalArgumentException](quantity.contradiction(level.take(8)))
  }
}
