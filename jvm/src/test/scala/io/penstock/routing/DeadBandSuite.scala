package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class DeadBandSuite extends AnyFunSuite {
  private val load = Array.fill(10)(100 * Load.OfTypicalRow)

  test("without measurements the dead band is empty") {
    assert(DeadBand.Empty.overMean(load, 2) == 1.0)
    assert(DeadBand(3.0, 1.0).overMean(Array.fill(10)(0L), 2) == 1.0)
  }

  test("the dead band is half the deviation of a task's time") {
    // Each task has 500 rows whose deviation equals their mean, so a task deviates by 1 / sqrt(500).
    assert(math.abs(DeadBand(1.0, 0.0).overMean(load, 2) - (1 + 0.5 / math.sqrt(500))) < 1e-9)
  }

  test("the dead band includes gains below one millisecond") {
    val msPerRow = 0.1
    // Each task takes 50 ms.
    assert(math.abs(DeadBand(0.0, msPerRow / Load.OfTypicalRow).overMean(load, 2) - 1.02) < 1e-9)
  }

  test("the dead band is at most a tenth of the mean") {
    assert(DeadBand(100.0, 1e-9).overMean(load, 8) == 1.1)
  }

  test("sticky keeps the owners within the dead band and balances fully beyond it") {
    val owners = Array.tabulate(10)(s => if (s < 5) 0 else 1)
    def bound(heavier: Long) = {
      val uneven = load.updated(0, load(0) + heavier * Load.OfTypicalRow)
      val taskOf = new StickyBinder(1.003, DeadBand(2.0, 0.0)).bind(uneven, 2, Some(owners))
      (Load.moved(Some(owners), taskOf), Load.imbalance(Load.ofTasks(uneven, taskOf, 2)))
    }
    // The deviation is 9 %, so the dead band is half of that.
    assert(bound(40)._1 == 0)
    val (moved, reached) = bound(190)
    assert(moved > 0 && reached < 1.09, (moved, reached))
  }
}
