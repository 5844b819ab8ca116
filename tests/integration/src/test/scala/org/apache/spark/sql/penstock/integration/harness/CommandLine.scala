package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Path, Paths}

/** What the Makefile's virtual environment has. */
object CommandLine {

  /** The command `penstock`. */
  val penstock: Path = Paths.get(sys.props.getOrElse("penstock.test.cli", ".venv/bin/penstock")).toAbsolutePath

  /** The Python that has the package. */
  val python: Path = penstock.resolveSibling("python")
}
