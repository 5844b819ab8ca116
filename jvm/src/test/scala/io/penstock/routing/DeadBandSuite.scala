package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class DeadBandSuite extends AnyFunSuite {
  private val load = Array.fill(10)(100 * Load.OfTypicalRow)

  test("nothing is known: nothing is left alone") {
    assert(DeadBand.Empty.overMean(load, 2) == 1.0)
    assert(DeadBand(3.0, 1.0).overMean(Array.fill(10)(0L), 2) == 1.0)
  }

  test("half the deviation of a task's time is left alone") {
    // 500 rows a task, which differ by their mean: the task by a part in the root of 500.
    assert(math.abs(DeadBand(1.0, 0.0).overMean(load, 2) - (1 + 0.5 / math.sqrt(500))) < 1e-9)
  }

  test("what would gain less than a millisecond is left alone") {
    val msPerRow = 0.1
    // Tasks of 50 ms.
    assert(math.abs(DeadBand(0.0, msPerRow / Load.OfTypicalRow).overMean(load, 2) - 1.02) < 1e-9)
  }

  test("a tenth of the mean is never left alone") {
    assert(DeadBand(100.0, 1e-9).overMean(load, 8) == 1.1)
  }

  test("the sticky binder keeps the owners within the dead band, and goes all the way beyond it") {
    val owners = Array.tabulate(10)(s => if (s < 5) 0 else 1)
    def bound(heavier: Long) = {
      val uneven = load.updated(0, load(0) + heavier * Load.OfTypicalRow)
      val taskOf = new StickyBinder(1.003, DeadBand(2.0, 0.0)).bind(uneven, 2, Some(owners))
      (Load.moved(Some(owners), taskOf), Load.imbalance(Load.ofTasks(uneven, taskOf, 2)))
    }
    // A deviation of 9 %, half of which is left alone.
    assert(bound(40)._1 == 0)
    val (moved, reached) = bound(190)
    assert(moved > 0 && reached < 1.09, (moved, reached))
  }
}
