package io.penstock

import java.net.URI

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.util.MutableURLClassLoader

/**
 * Spark makes one of these for each application whose class path has this jar (`META-INF/services`), with the plugin or
 * without. Without it, a query whose checkpoint Penstock has written would fail with the name of a class that is not there:
 * it gets a class of that name that says what to do. That one must not be on the class path where the plugin is, since it
 * would hide the real one: it lies in a folder of this jar, which is added to the class loader that `--jars` fill.
 */
class SessionsWithoutPlugin extends SparkSessionExtensionsProvider {
  import SessionsWithoutPlugin._

  // Nothing that goes wrong here may harm an application that has nothing to do with Penstock.
  override def apply(extensions: SparkSessionExtensions): Unit =
    try {
      val plugins = Option(SparkEnv.get).map(_.conf.get("spark.plugins", "")).getOrElse("").split(',').map(_.trim)
      if (!plugins.contains(classOf[PenstockPlugin].getName)) explain(Thread.currentThread().getContextClassLoader)
    } catch { case NonFatal(_) => }
}

private[penstock] object SessionsWithoutPlugin {
  private val Provider = "io.penstock.PenstockStateStoreProvider"

  /** Where the class is, in the jar. */
  private val Folder = "absent/"

  /** Adds the class that says what to do to a class loader that has no class of that name. */
  def explain(loader: ClassLoader): Unit = loader match {
    case mutable: MutableURLClassLoader if Try(Class.forName(Provider, false, loader)).isFailure =>
      val jar = getClass.getProtectionDomain.getCodeSource.getLocation
      mutable.addURL(new URI(s"jar:$jar!/$Folder").toURL)
    case _ =>
  }
}
