package io.penstock

import java.io.File
import java.util.{Collections, Map => JMap}

import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.sql.penstock.commit.{DriverMetrics, StateCommits}
import org.apache.spark.sql.penstock.components.DriverComponents
import org.apache.spark.sql.penstock.executors.{ExecutorOrders, ExecutorRegistered}
import org.apache.spark.sql.penstock.shims.RealTimeMode
import org.apache.spark.sql.penstock.state.{ExecutorMetrics, TravelSettings}
import org.apache.spark.sql.penstock.ui.PenstockTab
import org.apache.spark.{SPARK_VERSION, SparkContext}

import io.penstock.conf.{ApplicationSetup, Mode, Settings, SparkVersions}
import io.penstock.context.ProcessContext
import io.penstock.control.Planner
import io.penstock.process.{InstalledPython, PythonProcess, SidecarCommand}
import io.penstock.sidecars.planner.{PlannerSidecar, SidecarPlanner}
import org.slf4j.LoggerFactory

/**
 * Enables Penstock before the first session exists. [[io.penstock.conf.ApplicationSetup]] decides which settings it
 * changes. The application does not start
 *   - on a Spark version that the jar was not built for (PENSTOCK_UNSUPPORTED_SPARK),
 *   - with an invalid `spark.penstock.*` setting (PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING).
 */
class PenstockDriverPlugin extends DriverPlugin {
  private val log = LoggerFactory.getLogger(getClass)
  private var started: Option[ProcessContext] = None

  override def init(sc: SparkContext, context: PluginContext): JMap[String, String] = {
    SparkVersions.check(SPARK_VERSION)
    // Unlike `sc.getConf`, this is the live configuration that sessions are made from.
    val conf = context.conf()
    log.info(s"Penstock ${SparkVersions.penstock} for Spark ${SparkVersions.builtFor}")
    ApplicationSetup.plan(conf.getAll.toMap, RealTimeMode.refusesOtherProviders).foreach { step =>
      step.change.foreach { case (key, value) => conf.set(key, value) }
      log.info(s"Penstock: ${step.line}")
    }
    // Spark does not shut a plugin down whose start failed.
    try start(sc, context, conf.getAll.toMap)
    catch {
      case e: Throwable =>
        shutdown()
        throw e
    }
  }

  private def start(sc: SparkContext, context: PluginContext, settings: Map[String, String]): JMap[String, String] = {
    val mode = Settings.application(Settings.Mode, settings)
    val driver = DriverComponents.start(Option.when(mode != Mode.Off)(planner(settings)))
    started = Some(driver)
    DriverMetrics.register(context.metricRegistry(), StateCommits.current)
    DriverComponents.publish(driver, sc)
    showStatus(sc, mode)
    shipJar(sc, context)
    if (sc.isLocal) Collections.emptyMap()
    else {
      ExecutorStarts.watch(sc)
      DriverComponents.scale(
        driver,
        sc,
        Settings.application(Settings.ExecutorsMin, settings),
        Settings.application(Settings.ExecutorsMax, settings)
      )
      Collections.singletonMap(TravelSettings.SecretKey, PythonProcess.newToken())
    }
  }

  /**
   * Registers the executor's metrics in local mode: Spark starts the executor's plugin before it knows the id that is
   * part of the names of metrics.
   */
  override def registerMetrics(appId: String, context: PluginContext): Unit =
    ExecutorMetrics.find.foreach(_.register(context.metricRegistry()))

  private def showStatus(sc: SparkContext, mode: Mode): Unit =
    log.info(PenstockTab.attach(sc, mode).fold(
      "Penstock: `penstock top` cannot show this application, because spark.ui.enabled=false"
    )(url => s"Penstock: the status for `penstock top` is at $url"))

  /** Makes the planner. Its sidecar is started when a query first requests a plan. */
  private def planner(conf: Map[String, String]): Planner = new SidecarPlanner(new PlannerSidecar(
    SidecarCommand.of(conf, sys.env, InstalledPython.ofThisJar),
    SidecarCommand.Remedy
  ))

  override def receive(message: AnyRef): AnyRef = {
    message match {
      case executor: ExecutorRegistered => ExecutorOrders.find.foreach(_.arrived(executor))
      case other => log.warn(s"Penstock: unknown message from an executor: ${other.getClass}")
    }
    null
  }

  /** Shuts the driver's context down. The JVM may outlive the application: a notebook may start the next one in it. */
  override def shutdown(): Unit = started.foreach(_.shutdown())

  /**
   * Sends the jar to executors that do not get it with the application's own jars. They fetch it before they start their
   * plugins.
   */
  private def shipJar(sc: SparkContext, context: PluginContext): Unit = {
    val jar = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    if (!sc.isLocal && jar.isFile && !sc.listJars().exists(_.endsWith("/" + jar.getName))) {
      sc.addJar(jar.getPath)
      // Executors fetch the jars in this setting at their start. Spark wrote it before plugins were started.
      context.conf().set("spark.app.initial.jar.urls", sc.listJars().mkString(","))
      log.info(s"Penstock: executors fetch ${jar.getName} from the driver")
    }
  }
}
