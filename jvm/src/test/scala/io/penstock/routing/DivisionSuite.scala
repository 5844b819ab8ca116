package io.penstock.routing

import io.penstock.PropertyChecks
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class DivisionSuite extends AnyFunSuite with PropertyChecks {
  private val sizes = Gen.listOf(Gen.oneOf(Gen.const(0L), Gen.choose(0L, 1000L))).map(_.toArray)

  test("no part exceeds the bound of longest-first, and items of size zero are spread") {
    check(Prop.forAll(sizes, Gen.choose(1, 8)) { (sizes, parts) =>
      val sums = new Array[Long](parts)
      Division.of(sizes, parts).zip(sizes).foreach { case (part, size) => sums(part) += size }
      // The part that received the last item had at most the mean before.
      val bound = sizes.sum.toDouble / parts + sizes.maxOption.getOrElse(0L) * (1 - 1.0 / parts)
      sums.sum == sizes.sum && sums.max <= bound + 1e-9
    })
    assert(Division.of(new Array[Long](6), 3).groupBy(identity).values.map(_.length).toSeq == Seq(2, 2, 2))
  }

  test("Graham's example: five items on two parts") {
    assert(Division.of(Array(3L, 3L, 2L, 2L, 2L), 2).toSeq == Seq(0, 1, 0, 1, 0))
  }
}
