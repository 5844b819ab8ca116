package io.penstock.state.engine

import org.scalatest.funsuite.AnyFunSuite

class ArenaSuite extends AnyFunSuite {

  test("records allocated after a watermark have references at or above it, even after large records") {
    val arena = new Arena
    val sizes = Seq(8, 100000, 16, 65536, 70000, 24, 1 << 20, 8, 65528, 8)
    sizes.foldLeft(Seq.empty[(Int, Int)]) { (before, bytes) =>
      val mark = arena.watermark
      val ref = arena.allocate(bytes)
      assert(ref >= mark, s"$bytes bytes")
      assert(before.forall { case (r, m) => r < mark && m <= mark })
      before :+ (ref -> mark)
    }
  }
}
