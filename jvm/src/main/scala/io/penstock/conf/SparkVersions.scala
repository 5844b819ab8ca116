package io.penstock.conf

import java.util.Properties

import io.penstock.errors.PenstockException

/** Which Spark this jar was built for, and which versions of Spark are supported. */
object SparkVersions {

  /** Minor versions of Spark that are supported. Each has a jar of its own. */
  val supported: Seq[String] = Seq("4.2", "4.3")

  private lazy val build: Properties = {
    val properties = new Properties()
    val in = getClass.getResourceAsStream("/io/penstock/build.properties")
    try properties.load(in)
    finally in.close()
    properties
  }

  /** Version of Penstock. */
  def penstock: String = build.getProperty("version")

  /** Minor version of Spark that this jar was built for, such as `4.2`. */
  def builtFor: String = build.getProperty("spark")

  /**
   * Fails if this jar was not built for the running Spark.
   *
   * @param running
   *   full version of the running Spark, such as `4.2.0`
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNSUPPORTED_SPARK
   */
  def check(running: String, builtFor: String = builtFor): Unit = {
    val minor = running.split('.').take(2).mkString(".")
    if (!supported.contains(minor)) {
      throw new PenstockException(
        "PENSTOCK_UNSUPPORTED_SPARK",
        s"This is Spark $running. Penstock $penstock supports Spark ${supported.mkString(" and ")}. " +
          s"Run one of these, or remove io.penstock.PenstockPlugin from spark.plugins."
      )
    }
    if (minor != builtFor) {
      throw new PenstockException(
        "PENSTOCK_UNSUPPORTED_SPARK",
        s"This is Spark $running, but the jar on the class path was built for Spark $builtFor. " +
          s"Use penstock-spark-${minor}_2.13-$penstock.jar."
      )
    }
  }
}
