package io.penstock.telemetry

import org.scalatest.funsuite.AnyFunSuite

class HeavyKeysSuite extends AnyFunSuite {
  private def key(hash: Int, busyNs: Long, busyErrorNs: Long, rows: Long, rowsError: Long) =
    KeyLoad(hash, hash % 16, s"key $hash", busyNs, busyErrorNs, rows, rowsError)

  private val keys = Seq(
    key(1, 300L, 10L, 2L, 0L),
    // All of its time may come from a single reading.
    key(2, 500L, 500L, 1L, 0L),
    key(3, 100L, 20L, 60L, 0L),
    key(4, 9L, 1L, 3L, 3L)
  )

  test("by time, keys below a hundredth or explained by one pause are left out") {
    val found = HeavyKeys.of(keys, Some(1000L), 100L)
    assert(found.map(_.hash) == Seq(1, 3))
    assert(found.head == KeyShare(1, 1, "key 1", Some(0.3), 0.01, 0.02, 0.0))
    assert(math.abs(found.head.least - 0.29) < 1e-9)
  }

  test("keys are ranked by rows if time cannot be charged") {
    val found = HeavyKeys.of(keys, None, 100L)
    assert(found.map(k => (k.hash, k.share)) == Seq((3, 0.6), (1, 0.02), (2, 0.01)))
    assert(found.forall(k => k.busyShare.isEmpty && k.least == k.rowsShare))
  }

  test("without measurements there are no heavy keys") {
    assert(HeavyKeys.of(Nil, Some(0L), 0L).isEmpty)
  }
}
