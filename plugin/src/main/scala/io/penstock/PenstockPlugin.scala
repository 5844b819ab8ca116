package io.penstock

import java.util.{Collections, Map => JMap}

import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.{SPARK_VERSION, SparkContext}

import io.penstock.conf.{ApplicationSetup, SparkVersions}
import org.slf4j.LoggerFactory

/**
 * The entry point that `spark.plugins` names. On the driver it switches everything on before the first session exists:
 * what it sets is decided by [[io.penstock.conf.ApplicationSetup]]. It refuses to start
 *   - on a Spark that the jar was not built for (PENSTOCK_UNSUPPORTED_SPARK), on the driver and on every executor,
 *   - with a wrong `spark.penstock.*` setting (PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING).
 */
class PenstockPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new PenstockDriverPlugin
  override def executorPlugin(): ExecutorPlugin = new PenstockExecutorPlugin
}

private class PenstockDriverPlugin extends DriverPlugin {
  private val log = LoggerFactory.getLogger(classOf[PenstockPlugin])

  override def init(sc: SparkContext, context: PluginContext): JMap[String, String] = {
    SparkVersions.check(SPARK_VERSION)
    // The context's configuration, unlike `sc.getConf`, is the live one, which sessions are made from.
    val conf = context.conf()
    log.info(s"Penstock ${SparkVersions.penstock} for Spark ${SparkVersions.builtFor}")
    ApplicationSetup.plan(conf.getAll.toMap).foreach { step =>
      step.change.foreach { case (key, value) => conf.set(key, value) }
      log.info(s"Penstock: ${step.line}")
    }
    Collections.emptyMap()
  }
}

private class PenstockExecutorPlugin extends ExecutorPlugin {
  override def init(context: PluginContext, extraConf: JMap[String, String]): Unit = SparkVersions.check(SPARK_VERSION)
}
