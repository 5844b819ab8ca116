package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.Path

/** The Java installation that runs the tests. */
object JavaHome {

  /** Path of one of its programs. */
  def program(name: String): String = Path.of(sys.props("java.home"), "bin", name).toString
}
