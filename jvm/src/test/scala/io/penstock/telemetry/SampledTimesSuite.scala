package io.penstock.telemetry

import org.scalatest.funsuite.AnyFunSuite

class SampledTimesSuite extends AnyFunSuite {

  test("a row's time is the weighted mean of its shard's readings") {
    val times = new SampledTimes(3)
    times.add(0, 1000L, 10L)
    times.add(0, 300L, 1L)
    times.add(1, 500L, 1L)
    assert((times.samples(0), times.samples(1), times.samples(2)) == ((2, 1, 0)))
    assert(math.abs(times.rowNs(0) - 1300.0 / 11) < 1e-9 && times.rowNs(1) == 500.0)
    // No row of this shard was timed, so it gets the mean of all shards.
    assert(math.abs(times.rowNs(2) - 150.0) < 1e-9)
  }

  test("readings without rows are ignored") {
    val times = new SampledTimes(2)
    times.add(0, 100L, 0L)
    assert(times.rowNs(0) == 0.0 && times.variance == 0.0 && times.samples(0) == 0)
  }

  test("the deviation is that of rows within a shard, not between shards") {
    val random = new java.util.Random(1)
    val times = new SampledTimes(50)
    for (shard <- 0 until 50; _ <- 1 to 200)
      times.add(shard, (1000.0 * (shard + 10) + 2000.0 * random.nextGaussian()).toLong, 1L)
    assert(math.abs(math.sqrt(times.variance) - 2000.0) < 50.0)
    assert(math.abs(SampledTimes.deviationNs(Seq(times, times)) - 2000.0 * math.sqrt(2)) < 75.0)
  }

  test("the times of a row's steps add up") {
    val steps = Seq(100L, 300L).map { ns =>
      val times = new SampledTimes(1)
      times.add(0, ns, 1L)
      times
    }
    assert(SampledTimes.rowNs(steps, 0) == 400.0 && SampledTimes.samples(steps, 0) == 2)
  }
}
