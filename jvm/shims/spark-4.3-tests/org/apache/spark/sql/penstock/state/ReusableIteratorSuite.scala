package org.apache.spark.sql.penstock.state

import java.nio.file.Files
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.scalatest.funsuite.AnyFunSuite

/** Iterators that Spark 4.3 reuses when it expires timers and state. */
class ReusableIteratorSuite extends AnyFunSuite {
  private val keySchema = new StructType().add("ts", LongType, nullable = false).add("k", LongType, nullable = false)
  private val valueSchema = new StructType().add("v", LongType)
  private val keyOf = UnsafeProjection.create(keySchema)
  private val valueOf = UnsafeProjection.create(valueSchema)
  private val prefixOf = UnsafeProjection.create(new StructType().add("ts", LongType, nullable = false))

  private def key(ts: Long, k: Long): UnsafeRow = keyOf(InternalRow(ts, k)).copy()

  private def open(): StateStore = {
    val provider = new StandaloneProvider
    val hadoop = new Configuration()
    hadoop.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID().toString)
    val directory = Files.createTempDirectory("penstock-reuse").toString
    val spec = RangeKeyScanStateEncoderSpec(keySchema, Seq(0))
    val conf = new StateStoreConf(new SQLConf)
    provider.init(StateStoreId(directory, 0, 0), keySchema, valueSchema, spec, true, conf, hadoop, false, None)
    provider.getStore(0L, None, false, false)
  }

  test("a new iterator starts at the first entry, a refreshed one at the prefix with later changes") {
    val store = open()
    def put(ts: Long, k: Long): Unit = store.put(key(ts, k), valueOf(InternalRow(ts)), "default")
    (1L to 5L).foreach(put(_, 0))
    val iterator = store.asInstanceOf[SupportsReusableIterator].reusableIterator("default")
    def timestamps: Seq[Long] = iterator.map(_.key.getLong(0)).toVector

    assert(timestamps === (1L to 5L))
    store.remove(key(4, 0), "default")
    put(3, 1)
    iterator.refreshAndSeekToPrefix(prefixOf(InternalRow(3L)))
    assert(timestamps === Seq(3L, 3L, 5L))
    iterator.refreshAndSeekToPrefix(prefixOf(InternalRow(6L)))
    assert(timestamps.isEmpty)
    iterator.refreshAndSeekToPrefix(prefixOf(InternalRow(-1L)))
    assert(timestamps === Seq(1L, 2L, 3L, 3L, 5L))
    iterator.close()
    assert(!iterator.hasNext)
  }
}
