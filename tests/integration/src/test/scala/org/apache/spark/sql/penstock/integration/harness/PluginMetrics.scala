package org.apache.spark.sql.penstock.integration.harness

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkEnv

import com.codahale.metrics.{Counter, Gauge}

/** The plugin's metrics in Spark's metrics system. */
object PluginMetrics {

  /** Names and values of the metrics in this JVM. */
  def here: Map[String, Long] =
    SparkEnv.get.metricsSystem.getSourcesByName("plugin.io.penstock.PenstockPlugin").flatMap { source =>
      source.metricRegistry.getMetrics.asScala.collect {
        case (name, c: Counter) => name -> c.getCount
        case (name, g: Gauge[_]) => name -> g.getValue.asInstanceOf[Long]
      }
    }.toMap
}
