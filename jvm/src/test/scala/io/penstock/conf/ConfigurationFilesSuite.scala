package io.penstock.conf

import java.nio.file.{Files, Paths}

import org.scalatest.funsuite.AnyFunSuite

class ConfigurationFilesSuite extends AnyFunSuite {
  ConfigurationFiles.rendered.foreach { case (name, content) =>
    test(s"$name matches the registry") {
      val file = Paths.get(name)
      val found = if (Files.exists(file)) Files.readString(file) else ""
      assert(found == content, s"$name differs from the registry: run `make docs` and commit the result")
    }
  }
}
