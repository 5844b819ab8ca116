package org.apache.spark.sql.penstock.routing

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{ShuffleWriteMetricsReporter, ShuffleWriteProcessor}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleWriteMetricsReporter}
import org.apache.spark.sql.penstock.telemetry.PartitionAccumulator
import org.apache.spark.{ShuffleDependency, TaskContext}

/** Exact number of rows per shard of one shuffle, by map partition. */
final class ShardCounts(val shards: Int) extends PartitionAccumulator[Array[Long]] {
  override protected def empty: ShardCounts = new ShardCounts(shards)

  /** Adds all counts to `rows`. */
  def addTo(rows: Array[Long]): Unit = value.values.asScala.foreach { counts =>
    var s = 0
    while (s < counts.length) {
      rows(s) += counts(s)
      s += 1
    }
  }
}

/**
 * Shuffle write of Spark SQL that also counts the rows of each shard, and writes small outputs itself.
 */
final class CountingWriteProcessor(metrics: Map[String, SQLMetric], counts: ShardCounts) extends ShuffleWriteProcessor {

  override protected def createMetricsReporter(context: TaskContext): ShuffleWriteMetricsReporter =
    new SQLShuffleWriteMetricsReporter(context.taskMetrics().shuffleWriteMetrics, metrics)

  override def write(
      inputs: Iterator[_],
      dep: ShuffleDependency[_, _, _],
      mapId: Long,
      mapIndex: Int,
      context: TaskContext
  ): MapStatus = {
    val rows = new Array[Long](counts.shards)
    val records = inputs.asInstanceOf[Iterator[Product2[Int, InternalRow]]]
    val routed = dep.asInstanceOf[ShuffleDependency[Int, InternalRow, InternalRow]]
    val status =
      if (SmallMapOutput.applies(dep)) writeBuffered(records, routed, mapId, mapIndex, context, rows)
      else super.write(counting(records, rows), dep, mapId, mapIndex, context)
    counts.add((mapIndex, rows))
    status
  }

  private def writeBuffered(
      records: Iterator[Product2[Int, InternalRow]],
      dep: ShuffleDependency[Int, InternalRow, InternalRow],
      mapId: Long,
      mapIndex: Int,
      context: TaskContext,
      rows: Array[Long]
  ): MapStatus = {
    val buffer = RowBuffer.take()
    var fields = 0
    while (buffer.hasRoom && records.hasNext) {
      val record = records.next()
      val row = record._2.asInstanceOf[UnsafeRow]
      fields = row.numFields
      buffer.add(record._1, row)
    }
    if (records.hasNext) super.write(counting(buffer.rows(fields) ++ records, rows), dep, mapId, mapIndex, context)
    else {
      val checksums = dep.rowBasedChecksums
      val dataSize = metrics("dataSize")
      buffer.rows(fields).foreach { record =>
        rows(record._1) += 1
        dataSize.add(record._2.asInstanceOf[UnsafeRow].getSizeInBytes.toLong)
        if (checksums.nonEmpty) checksums(record._1).update(record._1, record._2)
      }
      new SmallMapOutput(dep, mapId, context, createMetricsReporter(context)).write(buffer, rows)
    }
  }

  private def counting(
      records: Iterator[Product2[Int, InternalRow]],
      rows: Array[Long]
  ): Iterator[Product2[Int, InternalRow]] = new Iterator[Product2[Int, InternalRow]] {
    override def hasNext: Boolean = records.hasNext
    override def next(): Product2[Int, InternalRow] = {
      val record = records.next()
      rows(record._1) += 1
      record
    }
  }
}
