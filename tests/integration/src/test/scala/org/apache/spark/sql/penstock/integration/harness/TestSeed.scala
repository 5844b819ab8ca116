package org.apache.spark.sql.penstock.integration.harness

/**
 * The seed of all random input in these tests. It is printed when a test fails. `-Dpenstock.test.seed=NUMBER` sets it,
 * to repeat a test or to run other inputs.
 */
object TestSeed {
  val Property = "penstock.test.seed"

  val base: Long = sys.props.get(Property).fold(1L)(_.toLong)

  /** The seed of a named test. */
  def of(name: String): Long = base * 31 + name.hashCode

  def clue: String = s"seed $base (again with -D$Property=$base)"
}
