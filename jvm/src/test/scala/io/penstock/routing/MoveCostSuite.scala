package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class MoveCostSuite extends AnyFunSuite {
  private val Megabyte = 1L << 20

  private def settled(bytes: Long, ms: Double, shards: Int): MoveCost =
    (0 until 60).foldLeft(MoveCost.Usual)((cost, _) => cost.after(bytes, ms, shards))

  test("the cost of moves is learned from batches, with a weight of a quarter for each") {
    val once = MoveCost.Usual.after(100 * Megabyte, ms = 10 + 100 * Megabyte / 1e6, shards = 10)
    val (before, found) = (1 / MoveCost.Usual.bytesPerMs, 1 / 1e6)
    assert(math.abs(1 / once.bytesPerMs - (0.75 * before + 0.25 * found)) < 1e-12)
    assert(math.abs(settled(100 * Megabyte, 10 + 100 * Megabyte / 1e6, 10).bytesPerMs - 1e6) < 10)
    assert(math.abs(settled(8 * Megabyte, 1 + 8 * Megabyte / 5e3, 1).ms(5000) - 2) < 1e-3)
  }

  test("small moves are ignored, and no batch makes moves free or impossible") {
    assert(MoveCost.Usual.after(Megabyte - 1, 1e9, 1) == MoveCost.Usual)
    assert(settled(Megabyte, 0, 500).bytesPerMs == 2e6)
    assert(settled(Megabyte, 1e9, 1).bytesPerMs == 1e3)
  }
}
