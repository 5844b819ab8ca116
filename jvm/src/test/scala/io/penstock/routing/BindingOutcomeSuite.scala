package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class BindingOutcomeSuite extends AnyFunSuite {
  private val theta = 1.05
  private val even = BindingOutcome(Some(1.03), 1.03, 0, 4, 0.05, None)

  test("balanced, with and without moves") {
    assert(even.inWords(theta) == "balanced: 1.03 expected")
    assert(even.copy(beforeOverMean = None, moved = 16).inWords(theta) == "balanced: 1.03 expected")
    val moved = even.copy(beforeOverMean = Some(1.4), moved = 3)
    assert(moved.inWords(theta) == "moved 3 shards: 1.40 of the mean before, 1.03 expected")
  }

  test("a little above theta nobody is told to do anything") {
    val key = BindingOutcome(Some(1.04), 1.04, 0, 4, 0.26, Some(("ORD", 0.26)))
    assert(key.inWords(1.01) == "1.04 expected, as balanced as these shards can be")
    assert(key.inWords(1.01, foreseen = false) == "1.04 expected", "another policy might do better")
    assert(key.copy(expectedOverMean = 1.06, heaviestShard = 0.265).inWords(1.01).contains("one key is the limit"))
  }

  test("one key is the limit: it is named, with what to do") {
    val hot = BindingOutcome(Some(1.6), 1.6, 0, 4, 0.4, Some(("ORD", 0.39)))
    assert(
      hot.inWords(theta) == "1.60 expected; one key is the limit: ORD has 39 % of the time, a task's fair share is " +
        "25 %. More than 2 tasks do not help; split the key in the query, or make its rows cheaper"
    )
  }

  test("a key that has little of its shard is not blamed") {
    val shard = BindingOutcome(Some(1.6), 1.6, 0, 4, 0.4, Some(("ORD", 0.2)))
    assert(shard.inWords(theta).contains("one shard is the limit: it has 40 % of the load"))
    assert(shard.copy(heaviestKey = None).inWords(theta).contains("one shard is the limit"))
  }

  test("few heavy shards that do not fit") {
    val coarse = BindingOutcome(None, 1.33, 0, 3, 0.25, None)
    assert(coarse.inWords(theta) == "1.33 expected; shards are too few and too heavy to be divided better")
    assert(coarse.inWords(theta, foreseen = false) == "1.33 expected", "another policy might do better")
  }
}
