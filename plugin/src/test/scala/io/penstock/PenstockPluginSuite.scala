package io.penstock

import org.apache.spark.sql.penstock.shims.RealTimeMode
import org.apache.spark.{SparkConf, SparkContext}

import io.penstock.conf.ApplicationSetup
import io.penstock.errors.PenstockException
import org.scalatest.funsuite.AnyFunSuite

/** The plugin in real applications. */
class PenstockPluginSuite extends AnyFunSuite {
  private def withApplication(conf: (String, String)*)(body: SparkContext => Unit): Unit = {
    val sparkConf = new SparkConf(false).setMaster("local[1]").setAppName("plugin").set("spark.ui.enabled", "false")
      .set("spark.plugins", "io.penstock.PenstockPlugin")
    conf.foreach { case (k, v) => sparkConf.set(k, v) }
    val sc = new SparkContext(sparkConf)
    try body(sc)
    finally sc.stop()
  }

  private def refused(conf: (String, String)*): PenstockException =
    intercept[PenstockException](withApplication(conf: _*)(_ => ()))

  test("setting spark.plugins is enough to enable Penstock") {
    withApplication() { sc =>
      val conf = sc.getConf
      assert(conf.get(ApplicationSetup.ExtensionsKey) == "io.penstock.PenstockExtensions")
      // If these are set for each query, the integration tests check them.
      val expected =
        Option.unless(RealTimeMode.refusesOtherProviders)("io.penstock.PenstockStateStoreProvider" -> "256")
      assert(conf.getOption(ApplicationSetup.ProviderKey) == expected.map(_._1))
      assert(conf.getOption(ApplicationSetup.StatePartitionsKey) == expected.map(_._2))
    }
  }

  test("settings of the user are kept") {
    val own = Map(
      ApplicationSetup.ProviderKey ->
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
      ApplicationSetup.StatePartitionsKey -> "3"
    )
    withApplication(own.toSeq: _*)(sc => own.foreach { case (k, v) => assert(sc.getConf.get(k) == v) })
  }

  test("with mode off, new queries use plain Spark") {
    withApplication("spark.penstock.mode" -> "off") { sc =>
      assert(sc.getConf.get(ApplicationSetup.ExtensionsKey) == ApplicationSetup.Extensions)
      assert(!sc.getConf.contains(ApplicationSetup.ProviderKey))
    }
  }

  test("an invalid setting stops the application at its start and leaves no context behind") {
    assert(refused("spark.penstock.shards" -> "65537").errorClass == "PENSTOCK_INVALID_SETTING")
    assert(refused("spark.penstock.thetta" -> "1.1").errorClass == "PENSTOCK_UNKNOWN_SETTING")
    withApplication()(sc => assert(!sc.isStopped))
  }
}
