package io.penstock.conf

import io.penstock.errors.PenstockException
import org.scalatest.funsuite.AnyFunSuite

class ApplicationSetupSuite extends AnyFunSuite {
  import ApplicationSetup._

  private def steps(conf: (String, String)*): Seq[Step] = plan(conf.toMap, perQuery = false)
  private def changes(conf: (String, String)*): Map[String, String] = steps(conf: _*).flatMap(_.change).toMap

  private val CatalogEntry = CatalogKey -> Catalog

  test("an empty configuration gets all four settings, with one log line each") {
    assert(changes() ==
      Map(ExtensionsKey -> Extensions, ProviderKey -> Provider, StatePartitionsKey -> "256", CatalogEntry))
    assert(steps().map(_.line).forall(_.startsWith("set ")))
  }

  test("the extension is appended to existing ones and never added twice") {
    assert(changes(ExtensionsKey -> "a.B, c.D")(ExtensionsKey) == s"a.B,c.D,$Extensions")
    assert(!changes(ExtensionsKey -> s"$Extensions,a.B").contains(ExtensionsKey))
  }

  test("the user's provider and number of state partitions are kept and logged") {
    val found = steps(ProviderKey -> "x.Y", StatePartitionsKey -> "7")
    assert(found.flatMap(_.change).map(_._1).toSet == Set(ExtensionsKey, CatalogKey))
    assert(found.exists(s => s.line.contains("x.Y") && s.line.contains("plain Spark")))
    assert(found.exists(s => s.line.contains("7 shards")))
  }

  test("the number of state partitions comes from spark.penstock.shards, not from shuffle partitions") {
    assert(changes("spark.penstock.shards" -> "64", "spark.sql.shuffle.partitions" -> "8")(StatePartitionsKey) == "64")
  }

  test("with per-query setup the application gets only the extension; the log lists the rest") {
    val found = plan(Map.empty, perQuery = true)
    assert(found.flatMap(_.change).toSet == Set(ExtensionsKey -> Extensions, CatalogEntry))
    Seq(ProviderKey -> Provider, StatePartitionsKey -> "256").foreach { case (key, value) =>
      assert(found.exists(s => s.line.contains(key) && s.line.contains(value) && s.line.contains("Real-Time Mode")))
    }
    val own = Map(ProviderKey -> "x.Y", StatePartitionsKey -> "7")
    assert(plan(own, perQuery = true) == plan(own, perQuery = false))
  }

  test("a query gets the settings that its session leaves unset, or none with another provider") {
    val plugged = Map(PluginsKey -> s"a.B, $Plugin")
    val both = Map(ProviderKey -> Provider, StatePartitionsKey -> "256")
    assert(forQuery(plugged, Map("spark.sql.shuffle.partitions" -> "8")) == both)
    assert(forQuery(plugged + ("spark.penstock.shards" -> "64"), Map.empty)(StatePartitionsKey) == "64")
    assert(forQuery(plugged, Map(ProviderKey -> Provider)) == both - ProviderKey)
    assert(forQuery(plugged, Map(StatePartitionsKey -> "7")) == both - StatePartitionsKey)
    assert(forQuery(plugged, Map(ProviderKey -> "x.Y")).isEmpty)
    assert(forQuery(plugged + ("spark.penstock.mode" -> "off"), Map.empty).isEmpty)
    assert(forQuery(Map(ExtensionsKey -> Extensions), Map.empty).isEmpty)
  }

  test("mode off leaves new queries to plain Spark and logs it") {
    val found = steps("spark.penstock.mode" -> "off")
    assert(found.flatMap(_.change).map(_._1).toSet == Set("spark.sql.extensions", CatalogKey))
    assert(found.map(_.line).exists(_.contains("mode=off")))
  }

  test("invalid settings are rejected whatever the mode") {
    Seq("on", "off").foreach { mode =>
      val e = intercept[PenstockException](steps("spark.penstock.mode" -> mode, "spark.penstock.shards" -> "65537"))
      assert(e.errorClass == "PENSTOCK_INVALID_SETTING")
    }
    assert(intercept[PenstockException](steps("spark.penstock.shard" -> "1")).errorClass ==
      "PENSTOCK_UNKNOWN_SETTING")
  }

  test("another Spark minor version is rejected, the same minor version is accepted") {
    def refused(running: String, builtFor: String): String = {
      val e = intercept[PenstockException](SparkVersions.check(running, builtFor))
      assert(e.errorClass == "PENSTOCK_UNSUPPORTED_SPARK")
      e.detail
    }
    SparkVersions.check("4.2.7", "4.2")
    SparkVersions.check("4.3.0-SNAPSHOT", "4.3")
    assert(refused("4.1.1", "4.2").contains("supports Spark 4.2 and 4.3"))
    assert(refused("4.10.0", "4.2").contains("4.10.0"))
    assert(refused("4.3.0", "4.2").contains("penstock-spark-4.3_2.13-"))
  }

  test("the jar reports the Spark version that it was built for") {
    assert(SparkVersions.builtFor == System.getProperty("penstock.spark.minor"))
    assert(SparkVersions.penstock.matches("\\d+\\.\\d+\\.\\d+.*"))
  }
}
