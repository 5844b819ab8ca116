package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** Copies of checkpoints, as tools make them. */
object CheckpointCopy {

  /** Every file, and the folders that hold one, as an object store has them. */
  def fileByFile(from: Path, to: Path): Path = {
    paths(from).filter(Files.isRegularFile(_)).foreach { file =>
      val target = to.resolve(from.relativize(file))
      Files.createDirectories(target.getParent)
      Files.copy(file, target)
    }
    to
  }

  /** A checkpoint as 0.1.0 left it: folders of state partitions are empty. */
  def withoutPartitionFiles(checkpoint: Path): Unit =
    paths(checkpoint.resolve("state")).filter(p => Files.isRegularFile(p) && p.getFileName.toString == "_penstock")
      .foreach(Files.delete)

  /** A folder and all below it, the folder first. */
  def paths(folder: Path): Seq[Path] = Using.resource(Files.walk(folder))(_.iterator.asScala.toVector)
}
