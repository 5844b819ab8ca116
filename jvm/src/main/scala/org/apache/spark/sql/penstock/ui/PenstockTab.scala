package org.apache.spark.sql.penstock.ui

import org.apache.spark.SparkContext
import org.apache.spark.ui.{SparkUI, SparkUITab}

import io.penstock.conf.{Mode, SparkVersions}
import io.penstock.status.{StatusDocument, StatusListener}

/** The tab of Spark's UI that shows what is decided for the application's queries, and tells it as JSON. */
final class PenstockTab private (ui: SparkUI, document: => StatusDocument, listener: StatusListener)
    extends SparkUITab(ui, "penstock") {
  override val name: String = "Penstock"
  attachPage(new StatusPage(this, document, listener))
}

object PenstockTab {

  /**
   * Starts to listen and to show.
   *
   * @param mode
   *   of the application
   * @return
   *   where the JSON is; None where the application has no UI
   */
  def attach(sc: SparkContext, mode: Mode): Option[String] = sc.ui.map { ui =>
    val listener = new StatusListener
    sc.addSparkListener(listener)
    // An application gets its id after its plugins.
    def document = StatusDocument(SparkVersions.penstock, sc.version, sc.applicationId, sc.appName, mode.name)
    ui.attachTab(new PenstockTab(ui, document, listener))
    s"${ui.webUrl}/penstock/json"
  }
}
