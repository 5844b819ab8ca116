package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

/** Events as JSON files for Spark's file source. */
object EventFiles {

  /** Writes a file atomically. The source reads by modification time, so modification times follow the number. */
  def write(source: Path, number: Int, events: Seq[Event]): Unit = {
    val lines = events.map { e =>
      s"""{"key": ${e.key}, "value": ${e.value}, "time": ${e.time}, "batch": ${e.batch}}"""
    }
    // Spark ignores files whose name starts with a dot.
    val file = Files.write(source.resolve(s".input-$number"), lines.asJava)
    file.toFile.setLastModified(1600000000000L + number * 10000L)
    Files.move(file, source.resolve(s"input-$number.json"))
    ()
  }
}
