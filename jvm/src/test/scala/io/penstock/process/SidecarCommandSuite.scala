package io.penstock.process

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

class SidecarCommandSuite extends AnyFunSuite {
  private def python(conf: (String, String)*)(environment: (String, String)*): String =
    SidecarCommand.of(conf.toMap, environment.toMap).head

  test("Python comes from the setting, PySpark's settings, PySpark's variables, then python3") {
    val all = Seq("spark.penstock.python" -> "a", "spark.pyspark.driver.python" -> "b", "spark.pyspark.python" -> "c")
    val variables = Seq("PYSPARK_DRIVER_PYTHON" -> "d", "PYSPARK_PYTHON" -> "e")
    assert(python(all: _*)(variables: _*) == "a")
    assert(python(all.drop(1): _*)(variables: _*) == "b")
    assert(python(all.drop(2): _*)(variables: _*) == "c")
    assert(python()(variables: _*) == "d" && python()(variables.drop(1): _*) == "e")
    assert(python("spark.penstock.python" -> "auto")() == "python3")
    val command = SidecarCommand.of(Map.empty, Map.empty)
    assert(command.head == "python3" && command.takeRight(2) == Seq("-m", "penstock.sidecars.planner"))
  }

  test("without a configured Python, the one that the jar was installed for is used if it exists") {
    val environment = Files.createTempDirectory("penstock-venv")
    val site = environment.resolve("lib/python3.11/site-packages")
    val jar = site.resolve("penstock/jars/penstock-spark-4.2_2.13-0.1.0.jar")
    Seq(jar.getParent, environment.resolve("bin")).foreach(Files.createDirectories(_))
    Files.createFile(jar)
    assert(InstalledPython.of(jar).isEmpty)
    val python = Files.createFile(environment.resolve("bin/python3"))
    python.toFile.setExecutable(true)
    assert(InstalledPython.of(jar).contains(python.toString))
    assert(InstalledPython.of(environment.resolve("elsewhere.jar")).isEmpty)
    def command(conf: (String, String)*) = SidecarCommand.of(conf.toMap, Map.empty, InstalledPython.of(jar)).head
    assert(command() == python.toString && command("spark.pyspark.python" -> "c") == "c")
  }
}
