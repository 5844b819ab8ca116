package org.apache.spark.sql.penstock.routing

import java.io.OutputStream

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.MutablePair

/**
 * Holds the rows of one map task until they are written shard by shard, in the format of Spark's row serializer (length
 * as four bytes, big endian, then the row). There is one buffer per thread, which is reused.
 */
final private[routing] class RowBuffer {
  private var bytes = new Array[Byte](RowBuffer.Start)
  private var used = 0
  private var starts = new Array[Int](1024)
  private var shards = new Array[Int](1024)
  private var count = 0

  /** Whether the buffer accepts another row. */
  def hasRoom: Boolean = used < RowBuffer.Limit

  def clear(): Unit = {
    used = 0
    count = 0
    if (bytes.length > 2 * RowBuffer.Limit) bytes = new Array[Byte](RowBuffer.Start)
  }

  def add(shard: Int, row: UnsafeRow): Unit = {
    val length = row.getSizeInBytes
    if (bytes.length - used < length + 4) {
      bytes = java.util.Arrays.copyOf(bytes, math.max(Math.addExact(used + 4, length), 2 * bytes.length))
    }
    if (count == starts.length) {
      starts = java.util.Arrays.copyOf(starts, 2 * count)
      shards = java.util.Arrays.copyOf(shards, 2 * count)
    }
    starts(count) = used
    shards(count) = shard
    count += 1
    bytes(used) = (length >>> 24).toByte
    bytes(used + 1) = (length >>> 16).toByte
    bytes(used + 2) = (length >>> 8).toByte
    bytes(used + 3) = length.toByte
    row.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + used + 4)
    used += 4 + length
  }

  /** The rows in the order in which they were added. Each row is valid until the next one is requested. */
  def rows(fields: Int): Iterator[Product2[Int, InternalRow]] = {
    val row = new UnsafeRow(fields)
    val pair = new MutablePair[Int, InternalRow]()
    Iterator.tabulate(count) { i =>
      row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + starts(i) + 4, end(i) - starts(i) - 4)
      pair.update(shards(i), row)
    }
  }

  /** Size of the serialized rows of each of `n` shards, in bytes. */
  def sizes(n: Int): Array[Int] = {
    val out = new Array[Int](n)
    var i = 0
    while (i < count) {
      out(shards(i)) += end(i) - starts(i)
      i += 1
    }
    out
  }

  /**
   * Calls `block` once for each shard that has rows, in ascending order.
   *
   * @param rowsOf
   *   Number of rows of each shard
   * @param block
   *   Gets the shard, and a function that writes the shard's rows in the order in which they were added
   */
  def byShard(rowsOf: Array[Long])(block: (Int, OutputStream => Unit) => Unit): Unit = {
    val next = new Array[Int](rowsOf.length)
    var s = 1
    while (s < next.length) {
      next(s) = next(s - 1) + rowsOf(s - 1).toInt
      s += 1
    }
    val order = new Array[Int](count)
    var i = 0
    while (i < count) {
      order(next(shards(i))) = i
      next(shards(i)) += 1
      i += 1
    }
    var from = 0
    s = 0
    while (s < next.length) {
      val to = next(s)
      val first = from
      if (to > first) {
        block(
          s,
          out => {
            var j = first
            while (j < to) {
              val r = order(j)
              out.write(bytes, starts(r), end(r) - starts(r))
              j += 1
            }
          }
        )
      }
      from = to
      s += 1
    }
  }

  private def end(i: Int): Int = if (i + 1 < count) starts(i + 1) else used
}

private[routing] object RowBuffer {

  /**
   * Capacity in bytes. Larger output goes to Spark's own writer, which can spill. That writer allocates as much before
   * its first row.
   */
  val Limit: Int = 2 << 20

  private val Start = 1 << 16

  /** Not in the executor context: a buffer belongs to its thread, keeps nothing of a task, and ends with the thread. */
  private val ofThread = ThreadLocal.withInitial(() => new RowBuffer)

  /** The empty buffer of this thread. */
  def take(): RowBuffer = {
    val buffer = ofThread.get
    buffer.clear()
    buffer
  }
}
