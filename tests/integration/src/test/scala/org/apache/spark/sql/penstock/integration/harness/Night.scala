package org.apache.spark.sql.penstock.integration.harness

/** `make nightly`, which also runs tests that take minutes and that a change hardly ever breaks. */
object Night {
  val isOn: Boolean = sys.env.contains("PENSTOCK_NIGHT")
}
