package io.penstock.routing

import io.penstock.conf.QuerySettings
import org.scalatest.funsuite.AnyFunSuite

class PinPolicySuite extends AnyFunSuite {
  private def pins(policy: String, most: Int, planned: Option[Set[Int]], pinned: Set[Int], heavy: Int*): Set[Int] = {
    val options = Map("penstock.policy" -> policy, "penstock.pinned.max" -> most.toString)
    val settings = QuerySettings.resolve(options, Map.empty, Map.empty)
    settings.policy.pins(settings.pinnedMax, _ => planned).pins(7L, 0L, pinned, heavy)
  }

  test("hybrid pins the planned keys, and changes nothing without a plan") {
    assert(pins("hybrid", 4, Some(Set(1, 2)), Set(2, 3)) == Set(1, 2))
    assert(pins("hybrid", 4, Some(Set.empty), Set(2, 3)) == Set.empty)
    assert(pins("hybrid", 4, None, Set(2, 3)) == Set(2, 3))
  }

  test("pins never exceed the limit, even if a plan is older than the setting") {
    assert(pins("hybrid", 1, Some(Set(1, 2)), Set.empty).size == 1)
    assert(pins("hybrid", 1, None, Set(2, 3)).size == 1)
  }

  test("other policies return all keys to their base shards") {
    assert(pins("refine", 4, Some(Set(1)), Set(2), 3) == Set.empty)
    assert(pins("static", 4, Some(Set(1)), Set(2), 3) == Set.empty)
  }

  test("chaos pins heavy keys at random, and is deterministic for a seed") {
    val all = (1 to 200).map(seed => pins(s"chaos($seed)", 2, None, Set(1), 2, 3))
    assert(all.forall(_.size <= 2) && all.flatten.toSet == Set(1, 2, 3) && all.map(_.size).distinct.size == 3)
    assert(all == (1 to 200).map(seed => pins(s"chaos($seed)", 2, None, Set(1), 2, 3)))
  }
}
