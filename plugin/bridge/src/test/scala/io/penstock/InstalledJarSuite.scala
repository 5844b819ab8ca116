package io.penstock

import java.io.File
import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

class InstalledJarSuite extends AnyFunSuite {
  private def folder(names: String*): File = {
    val directory = Files.createTempDirectory("penstock-jars").toFile
    directory.deleteOnExit()
    names.foreach { n =>
      val file = new File(directory, n)
      file.createNewFile()
      file.deleteOnExit()
    }
    directory
  }

  private val both = Seq("penstock-spark-4.2_2.13-0.1.0.jar", "penstock-spark-4.3_2.13-0.1.0.jar")

  test("the jar for the minor version of the running Spark is selected") {
    assert(InstalledJar.in(folder(both: _*), "4.3.0").getName == both(1))
    assert(InstalledJar.in(folder(both: _*), "4.2.9-SNAPSHOT").getName == both.head)
  }

  test("an unsupported minor version is refused with a list of the installed jars") {
    val e = intercept[IllegalStateException](InstalledJar.in(folder(both: _*), "4.20.0"))
    assert(e.getMessage.contains("PENSTOCK_UNSUPPORTED_SPARK") && both.forall(e.getMessage.contains))
  }

  test("no jar, or two jars for one minor version, is an error that names the folder") {
    Seq(folder(), folder(both.head, "penstock-spark-4.2_2.13-0.2.0.jar"), new File("/nowhere")).foreach { f =>
      val e = intercept[IllegalStateException](InstalledJar.in(f, "4.2.0"))
      assert(e.getMessage.contains("PENSTOCK_JAR_NOT_FOUND") && e.getMessage.contains(f.getPath))
    }
  }

  test("a class loader that cannot add a jar is an error") {
    intercept[IllegalStateException](InstalledJar.addTo(ClassLoader.getPlatformClassLoader))
  }
}
