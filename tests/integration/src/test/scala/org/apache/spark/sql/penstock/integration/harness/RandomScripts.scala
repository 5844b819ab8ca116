package org.apache.spark.sql.penstock.integration.harness

import org.scalacheck.Gen
import org.scalacheck.rng.Seed

/** Random scripts: inputs of any size, pauses, restarts and lost commits in any order. */
object RandomScripts {
  private val Inputs = 5

  /** The script of a seed. */
  def of(seed: Long, twoInputs: Boolean): Seq[Step] =
    steps(new EventGenerator(seed), twoInputs).pureApply(Gen.Parameters.default, Seed(seed))

  private def steps(events: EventGenerator, twoInputs: Boolean): Gen[Seq[Step]] = for {
    sizes <- Gen.listOfN(Inputs, inputSize)
    gaps <- Gen.listOfN(Inputs, Gen.frequency(4 -> 1, 1 -> 4))
    between <- Gen.listOfN(Inputs, disturbances)
  } yield {
    // Event time increases with the number of the input, and jumps if a number is left out.
    val numbers = gaps.scanLeft(0)(_ + _)
    sizes.zip(numbers).zip(between).flatMap { case ((size, number), after) =>
      val right = if (twoInputs) events.input(number, size / 2 + 1) else Nil
      Step.Feed(events.input(number, size), right) +: after
    } :+ Step.Idle
  }

  private def inputSize: Gen[Int] = Gen.frequency(1 -> Gen.const(0), 2 -> Gen.choose(1, 5), 4 -> Gen.choose(40, 150))

  private def disturbances: Gen[Seq[Step]] = Gen
    .frequency(3 -> Gen.const(0), 3 -> Gen.const(1), 1 -> Gen.const(2))
    .flatMap(Gen.listOfN(_, Gen.oneOf(Step.Restart, Step.Replay, Step.Idle)))
}
