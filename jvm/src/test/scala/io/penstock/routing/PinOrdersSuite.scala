package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class PinOrdersSuite extends AnyFunSuite {
  test("ordered pins override those that the policy chooses") {
    val orders = PinOrders().pin(1).unpin(2)
    assert(orders.over(Set(2, 3), Set(2), 4) == Set(1, 3))
    assert(orders.pin(2).over(Set(3), Set.empty, 4) == Set(1, 2, 3))
    assert(orders.unpin(1).over(Set(1, 3), Set(1), 4) == Set(3))
    assert(PinOrders().over(Set(2, 3), Set.empty, 4) == Set(2, 3))
  }

  test("ordered pins come first, then keys that are already pinned") {
    val orders = PinOrders().pin(9)
    assert(orders.over(Set(1, 2, 3), Set(3), 2) == Set(9, 3))
    assert(orders.over(Set(1, 2, 3), Set.empty, 2) == Set(9, 1))
    assert(orders.pin(8).over(Set(1), Set(1), 1) == Set(8))
    assert(orders.over(Set(1), Set(1), 0) == Set.empty)
  }
}
