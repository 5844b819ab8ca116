package io.penstock

import java.util.{Map => JMap}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}

import io.penstock.conf.SparkVersions

/** Starts an executor's part. It refuses a Spark that the jar was not built for (PENSTOCK_UNSUPPORTED_SPARK). */
class PenstockExecutorPlugin extends ExecutorPlugin {
  override def init(context: PluginContext, extraConf: JMap[String, String]): Unit = SparkVersions.check(SPARK_VERSION)
}
