package io.penstock

import java.net.URI

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.util.MutableURLClassLoader

/**
 * Makes queries with a Penstock checkpoint fail with a helpful error if the application runs without the plugin. Spark
 * loads this class in each application whose class path has this jar (`META-INF/services`), with or without the plugin.
 * Without the plugin, such a query would fail because the class of the state store provider is missing. This class
 * therefore provides a class of that name whose error states what to do. It must not be on the class path together with
 * the plugin, because it would hide the real class. So it is in a folder of this jar, which is added to the class
 * loader that also loads the jars of `--jars`.
 */
class SessionsWithoutPlugin extends SparkSessionExtensionsProvider {
  import SessionsWithoutPlugin._

  // A failure here must not affect applications that do not use Penstock.
  override def apply(extensions: SparkSessionExtensions): Unit =
    try {
      val plugins = Option(SparkEnv.get).map(_.conf.get("spark.plugins", "")).getOrElse("").split(',').map(_.trim)
      if (!plugins.contains(classOf[PenstockPlugin].getName)) explain(Thread.currentThread().getContextClassLoader)
    } catch { case NonFatal(_) => }
}

private[penstock] object SessionsWithoutPlugin {
  private val Provider = "io.penstock.PenstockStateStoreProvider"

  /** Folder of the class in this jar. */
  private val Folder = "absent/"

  /** Adds the class with the helpful error to a class loader that has no class of that name. */
  def explain(loader: ClassLoader): Unit = loader match {
    case mutable: MutableURLClassLoader if Try(Class.forName(Provider, false, loader)).isFailure =>
      val jar = getClass.getProtectionDomain.getCodeSource.getLocation
      mutable.addURL(new URI(s"jar:$jar!/$Folder").toURL)
    case _ =>
  }
}
