package io.penstock.benchmarks.source

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}

/**
 * The stream of a [[NumberSource]].
 *
 * @param partitions
 *   number of map tasks
 */
abstract class NumberStream(partitions: Int) extends MicroBatchStream {
  import NumberStream._

  /** The newest offset. 0 if there is no data yet. */
  protected def newest: Long

  /** Number of rows before an offset. */
  protected def rowsUntil(offset: Long): Long

  override def initialOffset(): Offset = Number(0)

  // Without rows there must be no offset, because Spark would run an empty batch for offset zero.
  override def latestOffset(): Offset = Some(newest).filter(_ > 0).map(Number(_)).orNull
  override def deserializeOffset(json: String): Offset = Number(json.toLong)

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    val (from, until) = (rowsUntil(number(start)), rowsUntil(number(end)))
    def cut(i: Long) = from + (until - from) * i / partitions
    Array.tabulate(partitions)(i => Range(cut(i.toLong), cut(i + 1L)))
  }

  override def createReaderFactory(): PartitionReaderFactory = Readers
  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = ()
}

object NumberStream {
  final private case class Number(n: Long) extends Offset { override def json(): String = n.toString }
  final private case class Range(from: Long, until: Long) extends InputPartition

  private def number(o: Offset): Long = o match {
    case Number(n) => n
    case other => other.json().toLong
  }

  private object Readers extends PartitionReaderFactory {
    override def createReader(partition: InputPartition): PartitionReader[InternalRow] = partition match {
      case Range(from, until) => new Numbers(from, until)
      case other => throw new IllegalArgumentException(s"input partition $other is not a range of numbers")
    }
  }

  final private class Numbers(from: Long, until: Long) extends PartitionReader[InternalRow] {
    private val writer = new UnsafeRowWriter(1)
    private var current = from - 1

    override def next(): Boolean = { current += 1; current < until }
    override def get(): InternalRow = {
      writer.reset()
      writer.write(0, current)
      writer.getRow
    }
    override def close(): Unit = ()
  }
}
