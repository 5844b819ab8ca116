package io.penstock

import java.io.File

import org.apache.spark.SPARK_VERSION
import org.apache.spark.util.MutableURLClassLoader

/**
 * Finds the jars that the wheel installs. The bridge, which contains this class, is in `pyspark/jars` and thus on the
 * class path of every PySpark application. `penstock/jars` has one jar for each minor version of Spark, and only the
 * jar for the running Spark may be loaded.
 */
private[penstock] object InstalledJar {

  /** Adds the jar for the running Spark to the class loader that also loads the jars of `--jars`. */
  def addTo(loader: ClassLoader): Unit = loader match {
    case mutable: MutableURLClassLoader => mutable.addURL(locate().toURI.toURL)
    case _ =>
      throw new IllegalStateException(
        "[PENSTOCK_JAR_NOT_FOUND] Penstock's jar is not on the class path, and this application was not started by " +
          s"spark-submit or PySpark, so it cannot be added now. Put ${locate()} on the class path."
      )
  }

  private def locate(): File = {
    val bridge = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    in(new File(bridge.getParentFile, "../../penstock/jars").getCanonicalFile, SPARK_VERSION)
  }

  /** Returns the jar in `folder` for a Spark version. */
  def in(folder: File, sparkVersion: String): File = {
    val minor = sparkVersion.split('.').take(2).mkString(".")
    val jars = Option(folder.listFiles()).toSeq.flatten.filter(_.getName.endsWith(".jar")).sorted
    jars.filter(_.getName.startsWith(s"penstock-spark-${minor}_2.13-")) match {
      case Seq(jar) => jar
      case Seq() if jars.nonEmpty =>
        throw new IllegalStateException(
          s"[PENSTOCK_UNSUPPORTED_SPARK] This is Spark $sparkVersion, but the installed Penstock has jars for other " +
            s"versions only: ${jars.map(_.getName).mkString(", ")}. Install one of these PySpark versions, or remove " +
            "io.penstock.PenstockPlugin from spark.plugins."
        )
      case found =>
        throw new IllegalStateException(
          s"[PENSTOCK_JAR_NOT_FOUND] Expected one jar named penstock-spark-${minor}_2.13-<version>.jar in $folder, " +
            s"found ${found.size}. Install the wheel `penstock` again, or pass the jar with --jars."
        )
    }
  }
}
