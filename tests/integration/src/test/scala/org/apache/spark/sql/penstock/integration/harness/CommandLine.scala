package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Path, Paths}

/** Programs in the Makefile's virtual environment. */
object CommandLine {

  /** The `penstock` command. */
  val penstock: Path = Paths.get(sys.props.getOrElse("penstock.test.cli", ".venv/bin/penstock")).toAbsolutePath

  /** The Python in which the package is installed. */
  val python: Path = penstock.resolveSibling("python")
}
