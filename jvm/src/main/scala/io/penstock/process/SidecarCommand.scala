package io.penstock.process

import io.penstock.conf.Settings

/** Commands that start sidecars. */
object SidecarCommand {
  private val Auto = Settings.Python.default

  /**
   * Runs a module as `-m` does, but without the working directory, which `-m` searches before the standard library:
   * other users may be able to write to that folder, or it may contain modules of the application. Option `-P` does the
   * same but needs Python 3.11.
   */
  private val WithoutWorkingDirectory =
    "import sys; sys.path[:] = [place for place in sys.path if place]; sys.argv[:] = sys.argv[2:]; import runpy; " +
      "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"

  /**
   * Command of the planner sidecar, which runs beside the driver.
   *
   * @param conf
   *   configuration of the application
   * @param environment
   *   environment variables of this process
   * @param installed
   *   the Python into which the wheel installed Penstock's jar, if it is known
   */
  def of(
      conf: Map[String, String],
      environment: Map[String, String],
      installed: Option[String] = None
  ): Seq[String] = {
    val confs = Seq("spark.pyspark.driver.python", "spark.pyspark.python").flatMap(conf.get)
    val variables = Seq("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON").flatMap(environment.get)
    python(conf, confs ++ variables ++ installed, "penstock.sidecars.planner")
  }

  /** Command of the transfer sidecar, which runs beside an executor. Executors may have a different Python. */
  def ofExecutor(
      conf: Map[String, String],
      environment: Map[String, String],
      installed: Option[String] = None
  ): Seq[String] =
    python(
      conf,
      conf.get("spark.pyspark.python") ++ environment.get("PYSPARK_PYTHON") ++ installed,
      "penstock.sidecars.transfer"
    )

  private def python(conf: Map[String, String], candidates: Iterable[String], module: String): Seq[String] = {
    val configured = Some(Settings.application(Settings.Python, conf)).filter(_ != Auto)
    Seq((configured ++ candidates).find(_.nonEmpty).getOrElse("python3"), "-c", WithoutWorkingDirectory, "-m", module)
  }

  /** What a user can do if a sidecar does not start. */
  val Remedy: String =
    s"Install the package penstock for this Python, or set ${Settings.Python.key} to a Python that has it; " +
      "`penstock doctor` shows what is missing"
}
