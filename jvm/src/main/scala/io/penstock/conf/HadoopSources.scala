package io.penstock.conf

import java.util.{Map => JMap}

import scala.util.Try

import org.apache.hadoop.conf.Configuration

/**
 * The sources of Hadoop's settings: for each setting, the names of the files or programs that set it. They are only
 * shown to people. Spark sends all Hadoop settings to the tasks of each stateful operator in every batch, and Hadoop
 * compresses the sources of each of several hundred settings separately. That takes several ms of the driver.
 */
object HadoopSources {

  /** The field is private in Hadoop, which has no method that removes sources without removing the settings. */
  private val field = Try {
    val found = classOf[Configuration].getDeclaredField("updatingResource")
    found.setAccessible(true)
    found
  }.toOption

  /** The sources by setting, which may be changed; None if this version of Hadoop does not keep them so. */
  private[penstock] def of(conf: Configuration): Option[JMap[String, Array[String]]] = conf.synchronized {
    // Settings are loaded at the first use, together with their sources.
    conf.size(): Unit
    field.map(_.get(conf)).collect { case sources: JMap[_, _] => sources.asInstanceOf[JMap[String, Array[String]]] }
  }

  /** Removes the sources of all settings. The settings do not change. Copies of `conf` then have no sources either. */
  def drop(conf: Configuration): Unit = conf.synchronized(of(conf).foreach(_.clear()))
}
