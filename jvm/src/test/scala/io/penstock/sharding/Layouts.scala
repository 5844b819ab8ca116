package io.penstock.sharding

import org.scalacheck.Gen

/** Generators of layouts. */
object Layouts {

  /** Hashes, some of them close to each other and some extreme. */
  val hash: Gen[Int] =
    Gen.frequency(
      3 -> Gen.choose(-9, 9),
      1 -> Gen.choose(Int.MinValue, Int.MaxValue),
      1 -> Gen.oneOf(Int.MinValue, Int.MaxValue)
    )

  val pinned: Gen[Set[Int]] = Gen.choose(0, 6).flatMap(n => Gen.listOfN(n, hash).map(_.toSet))

  /** A layout after some changes of its pinned hashes. */
  val layout: Gen[Layout] = for {
    baseShards <- Gen.choose(1, 8)
    changes <- Gen.choose(0, 4).flatMap(n => Gen.listOfN(n, pinned))
  } yield changes.foldLeft(Layout(baseShards))(_.pinning(_))
}
