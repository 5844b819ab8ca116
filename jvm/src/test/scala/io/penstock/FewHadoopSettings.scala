package io.penstock

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

/**
 * Leaves out what Hadoop says of its own services. Spark compresses each of a thousand settings by itself whenever it copies the
 * plan of a stream-stream join, which took a fourth of the time of a small batch.
 */
object FewHadoopSettings {
  def in(conf: Configuration): Unit = {
    // The first file system that is asked for brings the settings of all kinds.
    FileSystem.get(conf): Unit
    val kept = conf.iterator.asScala.map(_.getKey).filter(_.startsWith("fs.AbstractFileSystem.")).toSeq
    val values = kept.map(key => key -> conf.getRaw(key))
    conf.clear()
    values.foreach { case (key, value) => conf.set(key, value) }
  }
}
