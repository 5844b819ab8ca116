package io.penstock

import java.util.{Map => JMap}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.state.{ExecutorMetrics, ShardStores}

import io.penstock.conf.SparkVersions

/**
 * Starts an executor's part, its metrics, and ends it: state leaves the memory with the application. It refuses a Spark
 * that the jar was not built for (PENSTOCK_UNSUPPORTED_SPARK).
 */
class PenstockExecutorPlugin extends ExecutorPlugin {
  override def init(context: PluginContext, extraConf: JMap[String, String]): Unit = {
    SparkVersions.check(SPARK_VERSION)
    // In local mode the driver's part does it: Spark starts this before it knows the id that metrics are named by.
    if (context.executorID() != "driver") ExecutorMetrics.register(context.metricRegistry())
  }

  /** In local mode the JVM outlives the application: a shell or a notebook starts the next one in it. */
  override def shutdown(): Unit = ShardStores.dropAll()
}
