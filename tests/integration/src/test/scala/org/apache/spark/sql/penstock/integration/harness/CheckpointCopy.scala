package org.apache.spark.sql.penstock.integration.harness

import java.io.IOException
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{FileVisitResult, Files, NoSuchFileException, Path, SimpleFileVisitor}

import scala.collection.mutable

/** Copies of checkpoints, as tools make them. */
object CheckpointCopy {

  /** Copies every file, and only folders with files, as object stores do. Files deleted meanwhile are left out. */
  def fileByFile(from: Path, to: Path): Path = {
    paths(from).filter(Files.isRegularFile(_)).foreach { file =>
      val target = to.resolve(from.relativize(file))
      Files.createDirectories(target.getParent)
      try Files.copy(file, target)
      catch { case _: NoSuchFileException => () }
    }
    to
  }

  /** Makes a checkpoint look as 0.1.0 left it, with empty folders of state partitions. */
  def withoutPartitionFiles(checkpoint: Path): Unit =
    paths(checkpoint.resolve("state")).filter(p => Files.isRegularFile(p) && p.getFileName.toString == "_penstock")
      .foreach(Files.delete)

  /** A folder and everything below it, the folder first. Empty if it does not exist. */
  def paths(folder: Path): Seq[Path] = {
    val found = mutable.ArrayBuffer.empty[Path]
    Files.walkFileTree(
      folder,
      new SimpleFileVisitor[Path] {
        override def preVisitDirectory(dir: Path, attributes: BasicFileAttributes): FileVisitResult = add(dir)
        override def visitFile(file: Path, attributes: BasicFileAttributes): FileVisitResult = add(file)
        override def visitFileFailed(file: Path, e: IOException): FileVisitResult = FileVisitResult.CONTINUE
        private def add(path: Path) = {
          found += path
          FileVisitResult.CONTINUE
        }
      }
    )
    found.toSeq
  }
}
