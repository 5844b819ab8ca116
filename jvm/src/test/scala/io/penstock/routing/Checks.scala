package io.penstock.routing

import io.penstock.PropertyChecks
import org.scalacheck.Gen
import org.scalatest.Assertions

/** Generators for the property checks of binders. */
private[routing] trait Checks extends PropertyChecks { this: Assertions =>

  /** Rows of each shard: empty, even, skewed and extreme. */
  val anyRows: Gen[Array[Long]] = for {
    shards <- Gen.choose(1, 300)
    one <- Gen.oneOf(
      Gen.const(Gen.const(0L)),
      Gen.const(Gen.const(7L)),
      Gen.const(Gen.choose(0L, 100L)),
      Gen.const(Gen.frequency(20 -> Gen.choose(0L, 10L), 1 -> Gen.choose(0L, 100000L))),
      Gen.const(Gen.choose(0L, Long.MaxValue / 1000))
    )
    rows <- Gen.listOfN(shards, one)
  } yield rows.toArray

  val anyTasks: Gen[Int] = Gen.choose(1, 40)
}
