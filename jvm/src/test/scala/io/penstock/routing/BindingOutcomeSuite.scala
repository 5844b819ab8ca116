package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class BindingOutcomeSuite extends AnyFunSuite {
  private val theta = 1.05
  private val even = BindingOutcome(Some(1.03), 1.03, 1.0, 0, 4, 7, 0.05, None)

  test("a balanced batch is described with and without moves") {
    assert(even.inWords(theta, 1) == "balanced: 1.03 expected")
    assert(even.copy(imbalanceBefore = None, moved = 16).inWords(theta, 1) == "balanced: 1.03 expected")
    val moved = even.copy(imbalanceBefore = Some(1.4), moved = 3)
    assert(moved.inWords(theta, 1) == "moved 3 shards: imbalance 1.40 before, 1.03 expected")
  }

  test("an imbalance slightly above theta comes with no advice") {
    val key = BindingOutcome(Some(1.04), 1.04, 1.0, 0, 4, 7, 0.26, Some(("ORD", 0.26)))
    assert(key.inWords(1.01, 1) == "1.04 expected, as balanced as these shards can be")
    assert(key.inWords(1.01, 1, foreseen = false) == "1.04 expected", "another policy might do better")
    assert(key.copy(expectedImbalance = 1.06, heaviestShare = 0.265).inWords(1.01, 1).contains("one key is the limit"))
  }

  test("a limiting key is named, with advice after several batches") {
    val hot = BindingOutcome(Some(1.6), 1.6, 1.0, 0, 4, 7, 0.4, Some(("ORD", 0.39)))
    assert(
      hot.inWords(theta, 9) ==
        "1.60 expected; one key is the limit: ORD has 39 % of the time, a task's fair share is 25 %"
    )
    assert(
      hot.inWords(
        theta,
        12
      ) == "1.60 expected; one key is the limit: ORD has 39 % of the time, a task's fair share is " +
        "25 %, in each of the last 12 batches. More than 2 tasks do not help; split the key in the query, or make its rows " +
        "cheaper"
    )
  }

  test("a key with a small part of its shard is not named as the limit") {
    val shard = BindingOutcome(Some(1.6), 1.6, 1.0, 0, 4, 7, 0.4, Some(("ORD", 0.2)))
    assert(shard.inWords(theta, 1).contains("one shard is the limit: 7 has 40 % of the load"))
    assert(shard.inWords(
      theta,
      10
    ).endsWith("in each of the last 10 batches. A new checkpoint with more shards would divide it"))
    assert(shard.copy(heaviestKey = None).inWords(theta, 1).contains("one shard is the limit"))
  }

  test("few heavy shards that do not fit are reported as too few") {
    val coarse = BindingOutcome(None, 1.33, 1.0, 0, 3, 7, 0.25, None)
    assert(coarse.inWords(theta, 1) == "1.33 expected; shards are too few and too heavy to be divided better")
    assert(coarse.inWords(theta, 1, foreseen = false) == "1.33 expected", "another policy might do better")
  }

  test("a batch within the dead band is balanced") {
    assert(even.copy(tolerated = 1.1).inWords(1.003, 1) == "balanced: 1.03 expected")
  }

  test("the number of batches in a row with the same limit is counted") {
    val (key, shard) = (Limit(7, Some("ORD")), Limit(7, None))
    val found =
      Seq(Some(key), Some(key), Some(shard), None, Some(key)).scanLeft(Limited.Never)(_ after _).map(_.batches)
    assert(found == Seq(0, 1, 2, 1, 0, 1))
  }
}
