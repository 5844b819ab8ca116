package io.penstock

import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.spark.SPARK_VERSION
import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.components.ExecutorComponents
import org.apache.spark.sql.penstock.state.{ExecutorMetrics, TravelSettings}

import io.penstock.conf.{Settings, SparkVersions}
import io.penstock.context.ProcessContext
import io.penstock.process.{InstalledPython, SidecarCommand}
import org.slf4j.LoggerFactory

/**
 * Starts the executor side of Penstock and its metrics. At shutdown it frees all state. It refuses a Spark version that
 * the jar was not built for (PENSTOCK_UNSUPPORTED_SPARK).
 */
class PenstockExecutorPlugin extends ExecutorPlugin {
  private val log = LoggerFactory.getLogger(getClass)
  private var started: Option[ProcessContext] = None

  override def init(context: PluginContext, extraConf: JMap[String, String]): Unit = {
    SparkVersions.check(SPARK_VERSION)
    val executor = ExecutorComponents.start(context.conf().getAll.toMap, context.executorID())
    started = Some(executor)
    // In local mode the driver plugin registers metrics: Spark starts this plugin before it knows the id that is part
    // of metric names.
    if (context.executorID() != "driver") {
      ExecutorMetrics.current.register(context.metricRegistry())
      Option(extraConf.get(TravelSettings.SecretKey)).foreach(startTransfer(executor, context, _))
    }
  }

  /** Starts the transfer sidecar, which sends shards to other executors. Does not wait for it. */
  private def startTransfer(executor: ProcessContext, context: PluginContext, secret: String): Unit = {
    val conf = context.conf()
    if (TravelSettings.isOn(conf)) {
      // An executor without a sidecar continues to run.
      try {
        val settings = conf.getAll.toMap
        context.send(ExecutorComponents.transfer(
          executor,
          SidecarCommand.ofExecutor(settings, sys.env, InstalledPython.ofThisJar),
          TravelSettings.of(conf, secret),
          Settings.application(Settings.HandOverLimitMs, settings)
        ))
      } catch {
        case NonFatal(e) =>
          log.warn("Penstock: the transfer sidecar did not start, so shards are loaded from the checkpoint", e)
      }
    }
  }

  /**
   * Shuts the executor's context down, which hands over and frees all state. In local mode the JVM outlives the
   * application: a shell or a notebook may start the next one in it.
   */
  override def shutdown(): Unit = started.foreach(_.shutdown())
}
