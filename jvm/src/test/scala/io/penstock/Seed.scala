package io.penstock

/** Seed of all random input in unit tests. Set it with `-Dpenstock.test.seed=NUMBER`. */
object Seed {
  val value: Long = sys.props.get("penstock.test.seed").fold(20261121L)(_.toLong)
}
