package io.penstock.sidecar

import org.scalatest.funsuite.AnyFunSuite

class SidecarCommandSuite extends AnyFunSuite {
  private def python(conf: (String, String)*)(environment: (String, String)*): String =
    SidecarCommand.of(conf.toMap, environment.toMap).head

  test("the setting, then PySpark's settings, then its variables, then python3") {
    val all = Seq("spark.penstock.python" -> "a", "spark.pyspark.driver.python" -> "b", "spark.pyspark.python" -> "c")
    val variables = Seq("PYSPARK_DRIVER_PYTHON" -> "d", "PYSPARK_PYTHON" -> "e")
    assert(python(all: _*)(variables: _*) == "a")
    assert(python(all.drop(1): _*)(variables: _*) == "b")
    assert(python(all.drop(2): _*)(variables: _*) == "c")
    assert(python()(variables: _*) == "d" && python()(variables.drop(1): _*) == "e")
    assert(python("spark.penstock.python" -> "auto")() == "python3")
    assert(SidecarCommand.of(Map.empty, Map.empty) == Seq("python3", "-m", "penstock.sidecar"))
  }
}
