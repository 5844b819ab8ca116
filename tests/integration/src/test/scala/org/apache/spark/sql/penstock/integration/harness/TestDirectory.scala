package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import org.apache.spark.util.Utils

import org.scalatest.{BeforeAndAfterAll, Suite}

/** A directory of the suite, deleted when the suite ends. */
trait TestDirectory extends BeforeAndAfterAll { this: Suite =>
  protected lazy val directory: Path = Files.createTempDirectory("penstock-test")

  protected def newDirectory(name: String): Path = Files.createTempDirectory(directory, name)

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally Utils.deleteRecursively(directory.toFile)
}
