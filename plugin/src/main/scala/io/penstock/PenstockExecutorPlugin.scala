package io.penstock

import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.spark.SPARK_VERSION
import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.executors.ExecutorEndpoint
import org.apache.spark.sql.penstock.state.{ExecutorMetrics, LeavingExecutor, ShardSender, ShardStores, TravelSettings}

import io.penstock.conf.{Settings, SparkVersions}
import io.penstock.process.{InstalledPython, SidecarCommand}
import io.penstock.sidecars.transfer.ExecutorTransfer
import org.slf4j.LoggerFactory

/**
 * Starts an executor's part, its metrics, and ends it: state leaves the memory with the application. It refuses a Spark
 * that the jar was not built for (PENSTOCK_UNSUPPORTED_SPARK).
 */
class PenstockExecutorPlugin extends ExecutorPlugin {
  private val log = LoggerFactory.getLogger(getClass)
  private var handOverLimitMs = 0

  override def init(context: PluginContext, extraConf: JMap[String, String]): Unit = {
    SparkVersions.check(SPARK_VERSION)
    // In local mode the driver's part does it: Spark starts this before it knows the id that metrics are named by.
    if (context.executorID() != "driver") {
      ExecutorMetrics.register(context.metricRegistry())
      Option(extraConf.get(TravelSettings.SecretKey)).foreach(startTransfer(context, _))
    }
  }

  /** Shards travel by a process beside this one, which is started without waiting for it. */
  private def startTransfer(context: PluginContext, secret: String): Unit = {
    val conf = context.conf()
    handOverLimitMs = Settings.application(Settings.HandOverLimitMs, conf.getAll.toMap)
    if (TravelSettings.isOn(conf)) {
      // An executor without one goes on.
      try {
        val command = SidecarCommand.ofExecutor(conf.getAll.toMap, sys.env, InstalledPython.ofThisJar)
        ExecutorTransfer.start(command, TravelSettings.of(conf, secret), ShardSender)
        context.send(ExecutorEndpoint.start())
      } catch { case NonFatal(e) => log.warn("Penstock: no sidecar, so that shards come from the checkpoint", e) }
    }
  }

  /** In local mode the JVM outlives the application: a shell or a notebook starts the next one in it. */
  override def shutdown(): Unit = {
    LeavingExecutor.handOver(handOverLimitMs)
    ExecutorTransfer.stop()
    ShardStores.dropAll()
  }
}
