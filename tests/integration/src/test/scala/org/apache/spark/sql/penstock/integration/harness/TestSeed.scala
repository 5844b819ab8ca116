package org.apache.spark.sql.penstock.integration.harness

/**
 * Where the randomness of the tests comes from: one number, printed when a test fails, and given with
 * `-Dpenstock.test.seed=NUMBER` to run the same test again or another one.
 */
object TestSeed {
  val Property = "penstock.test.seed"

  val base: Long = sys.props.get(Property).fold(1L)(_.toLong)

  /** A seed for one named test. */
  def of(name: String): Long = base * 31 + name.hashCode

  def clue: String = s"seed $base (again with -D$Property=$base)"
}
