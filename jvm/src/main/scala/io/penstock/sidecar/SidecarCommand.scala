package io.penstock.sidecar

import io.penstock.conf.Settings

/** How the driver's sidecar is started. */
object SidecarCommand {
  private val Auto = Settings.Python.default
  private val Confs = Seq("spark.pyspark.driver.python", "spark.pyspark.python")
  private val Variables = Seq("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")

  /**
   * The program and its arguments.
   *
   * @param conf
   *   the application's configuration
   * @param environment
   *   of the driver's process
   */
  def of(conf: Map[String, String], environment: Map[String, String]): Seq[String] = {
    val set = Some(Settings.application(Settings.Python, conf)).filter(_ != Auto)
    val candidates = set ++ Confs.flatMap(conf.get) ++ Variables.flatMap(environment.get)
    Seq(candidates.find(_.nonEmpty).getOrElse("python3"), "-m", "penstock.sidecar")
  }

  /** What a user can do where it does not start. */
  val Remedy: String =
    s"Install the package penstock for this Python, or name one that has it with ${Settings.Python.key}; " +
      "`penstock doctor` tells what is missing"
}
