package io.penstock.process

import io.penstock.conf.Settings

/** How sidecars are started. */
object SidecarCommand {
  private val Auto = Settings.Python.default

  /**
   * Runs a module as `-m` does, but for the working directory, which `-m` searches before the standard library: it may be a
   * folder that others write to, or that the application's own files are in. Option `-P` is Python 3.11's.
   */
  private val WithoutWorkingDirectory =
    "import sys; sys.path[:] = [place for place in sys.path if place]; sys.argv[:] = sys.argv[2:]; import runpy; " +
      "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"

  /**
   * The program and its arguments, for the driver's.
   *
   * @param conf
   *   the application's configuration
   * @param environment
   *   of this process
   * @param installed
   *   the Python that Penstock's jar was installed for, if it is known
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

  /** The same, for an executor's: the Python of the executors may be another. */
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

  private def python(conf: Map[String, String], others: Iterable[String], module: String): Seq[String] = {
    val set = Some(Settings.application(Settings.Python, conf)).filter(_ != Auto)
    Seq((set ++ others).find(_.nonEmpty).getOrElse("python3"), "-c", WithoutWorkingDirectory, "-m", module)
  }

  /** What a user can do where it does not start. */
  val Remedy: String =
    s"Install the package penstock for this Python, or name one that has it with ${Settings.Python.key}; " +
      "`penstock doctor` tells what is missing"
}
