package org.apache.spark.sql.penstock.ui

import org.apache.spark.SparkContext
import org.apache.spark.ui.{SparkUI, SparkUITab}

import io.penstock.conf.{Mode, SparkVersions}
import io.penstock.status.{StatusDocument, StatusListener}

/** Tab of Spark's UI that shows Penstock's decisions for the application's queries, also as JSON. */
final class PenstockTab private (ui: SparkUI, document: => StatusDocument, listener: StatusListener)
    extends SparkUITab(ui, "penstock") {
  override val name: String = "Penstock"
  attachPage(new StatusPage(this, document, listener))
}

object PenstockTab {

  /**
   * Adds the tab and its listener to an application.
   *
   * @param mode
   *   Mode of the application
   * @return
   *   URL of the JSON; None if the application has no UI
   */
  def attach(sc: SparkContext, mode: Mode): Option[String] = sc.ui.map { ui =>
    val listener = new StatusListener
    sc.addSparkListener(listener)
    // A `def`, because the application gets its id only after its plugins have started.
    def document = StatusDocument(SparkVersions.penstock, sc.version, sc.applicationId, sc.appName, mode.name)
    ui.attachTab(new PenstockTab(ui, document, listener))
    s"${ui.webUrl}/penstock/json"
  }
}
