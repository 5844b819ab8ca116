package io.penstock

import org.scalacheck.{Prop, Test => Check}
import org.scalatest.Assertions

/** Checks a property and reports the counterexample when it fails. */
trait PropertyChecks { this: Assertions =>
  def check(property: Prop, times: Int = 200): Unit = {
    val result = Check.check(Check.Parameters.default.withMinSuccessfulTests(times), property)
    assert(result.passed, org.scalacheck.util.Pretty.pretty(result))
  }
}
