package io.penstock

import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.spark.SPARK_VERSION
import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.state.{
  ExecutorEndpoint,
  ExecutorMetrics,
  LeavingExecutor,
  ShardSender,
  ShardStores,
  TravelSettings
}

import io.penstock.conf.{Settings, SparkVersions}
import io.penstock.process.{InstalledPython, SidecarCommand}
import io.penstock.sidecars.transfer.ExecutorTransfer
import org.slf4j.LoggerFactory

/**
 * Starts the executor side of Penstock and its metrics. At shutdown it frees all state. It refuses a Spark version that
 * the jar was not built for (PENSTOCK_UNSUPPORTED_SPARK).
 */
class PenstockExecutorPlugin extends ExecutorPlugin {
  private val log = LoggerFactory.getLogger(getClass)
  private var handOverLimitMs = 0

  override def init(context: PluginContext, extraConf: JMap[String, String]): Unit = {
    SparkVersions.check(SPARK_VERSION)
    // In local mode the driver plugin registers metrics: Spark starts this plugin before it knows the id that is part
    // of metric names.
    if (context.executorID() != "driver") {
      ExecutorMetrics.register(context.metricRegistry())
      Option(extraConf.get(TravelSettings.SecretKey)).foreach(startTransfer(context, _))
    }
  }

  /** Starts the transfer sidecar, which sends shards to other executors. Does not wait for it. */
  private def startTransfer(context: PluginContext, secret: String): Unit = {
    val conf = context.conf()
    handOverLimitMs = Settings.application(Settings.HandOverLimitMs, conf.getAll.toMap)
    if (TravelSettings.isOn(conf)) {
      // An executor without a sidecar continues to run.
      try {
        val command = SidecarCommand.ofExecutor(conf.getAll.toMap, sys.env, InstalledPython.ofThisJar)
        ExecutorTransfer.start(command, TravelSettings.of(conf, secret), ShardSender)
        context.send(ExecutorEndpoint.start())
      } catch {
        case NonFatal(e) =>
          log.warn("Penstock: the transfer sidecar did not start, so shards are loaded from the checkpoint", e)
      }
    }
  }

  /**
   * Frees all state. In local mode the JVM outlives the application: a shell or a notebook may start the next one in
   * it.
   */
  override def shutdown(): Unit = {
    LeavingExecutor.handOver(handOverLimitMs)
    ExecutorTransfer.stop()
    ShardStores.dropAll()
  }
}
