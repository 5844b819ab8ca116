package io.penstock

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

/**
 * Drops the Hadoop settings that these tests do not need. Spark compresses each of about a thousand settings separately
 * whenever it copies the plan of a stream-stream join, which took a quarter of the time of a small batch.
 */
object FewHadoopSettings {
  def in(conf: Configuration): Unit = {
    // The first lookup of a file system loads the settings of all kinds.
    FileSystem.get(conf): Unit
    val kept = conf.iterator.asScala.filter(_.getKey.startsWith("fs.AbstractFileSystem.")).toSeq
    conf.clear()
    kept.foreach(setting => conf.set(setting.getKey, setting.getValue))
  }
}
