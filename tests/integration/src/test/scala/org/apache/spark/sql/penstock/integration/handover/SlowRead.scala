package org.apache.spark.sql.penstock.integration.handover

import java.nio.file.{Files, Path}

import org.apache.spark.sql.Row
import org.apache.spark.sql.penstock.integration.harness.Rendering
import org.apache.spark.{SparkEnv, TaskContext}

/**
 * A partition of a batch that was read completely.
 *
 * @param executor
 *   Executor that read the partition
 */
final case class ReadPartition(partition: Int, executor: String, pid: Long, rows: Seq[String])

/** A task that is reading a partition and has read its first row. */
final case class Reader(partition: Int, executor: String)

/**
 * Reads partitions with a pause at each row, so that a query which reads state row by row reads it slowly.
 *
 * @param pausesMs
 *   Pause by partition and executor, in milliseconds
 * @param readers
 *   Directory in which each task creates a file when it has read its first row
 */
final class SlowRead(pausesMs: (Int, String) => Int, readers: String)
    extends ((Int, Iterator[Row]) => Iterator[ReadPartition])
    with Serializable {

  override def apply(partition: Int, rows: Iterator[Row]): Iterator[ReadPartition] = {
    val executor = SparkEnv.get.executorId
    val pauseMs = pausesMs(partition, executor).toLong
    val read = rows.zipWithIndex.map { case (row, index) =>
      if (index == 0) Files.createFile(Path.of(readers, s"$partition-$executor-${TaskContext.get().taskAttemptId()}"))
      Thread.sleep(pauseMs)
      Rendering.of(row)
    }.toVector
    Iterator(ReadPartition(partition, executor, ProcessHandle.current().pid(), read))
  }
}

object SlowRead {

  /** Tasks that have read a row so far. */
  def readers(directory: Path): Seq[Reader] = directory.toFile.list.toSeq.map(_.split('-')).map(name =>
    Reader(name(0).toInt, name(1))
  )
}
