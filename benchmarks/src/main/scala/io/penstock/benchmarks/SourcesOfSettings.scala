package io.penstock.benchmarks

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkContext

import io.penstock.conf.HadoopSources

/**
 * Gives plain Spark's batches the sources of Hadoop's settings, which Penstock removes for the whole application. All
 * sides run in one application, and in an application without Penstock plain Spark would have them.
 */
object SourcesOfSettings {

  /** Prepares the application for a batch of a side. Must not be called while a batch runs. */
  def prepare(side: Side): Unit = {
    val conf = SparkContext.getOrCreate().hadoopConfiguration
    HadoopSources.drop(conf)
    if (side.isPlain)
      for (target <- HadoopSources.of(conf); loaded <- loadedSources)
        conf.iterator.asScala.map(_.getKey).foreach(key => target.put(key, loaded.getOrDefault(key, Programmatically)))
  }

  /** Sources as Hadoop loads them with the settings. Loaded once, because that reads files. */
  private lazy val loadedSources = HadoopSources.of(new Configuration())

  /** What Hadoop records for a setting that a program has set. */
  private val Programmatically = Array("programmatically")
}
