package io.penstock.sharding

import org.scalacheck.Gen

/** Layouts for tests. */
object Layouts {

  /** Hashes, some of them near each other and some of them extreme. */
  val hash: Gen[Int] =
    Gen.frequency(
      3 -> Gen.choose(-9, 9),
      1 -> Gen.choose(Int.MinValue, Int.MaxValue),
      1 -> Gen.oneOf(Int.MinValue, Int.MaxValue)
    )

  val pinned: Gen[Set[Int]] = Gen.choose(0, 6).flatMap(n => Gen.listOfN(n, hash).map(_.toSet))

  /** What became of a number of changes of what is pinned. */
  val layout: Gen[Layout] = for {
    baseShards <- Gen.choose(1, 8)
    changes <- Gen.choose(0, 4).flatMap(n => Gen.listOfN(n, pinned))
  } yield changes.foldLeft(Layout(baseShards))(_.pinning(_))
}
