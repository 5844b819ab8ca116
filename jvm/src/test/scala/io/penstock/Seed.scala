package io.penstock

/** Where the randomness of unit tests comes from, given with `-Dpenstock.test.seed=NUMBER` to run another one. */
object Seed {
  val value: Long = sys.props.get("penstock.test.seed").fold(20261121L)(_.toLong)
}
