package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark 4.3: a reader registers the column families that it reads, and iterators may be reused. */
abstract class VersionedStateStore extends StateStore with SupportsReusableIterator {

  /** Entries of an ordered family in key order, from a prefix of the key on. */
  def pairsFrom(prefix: UnsafeRow, family: String): Iterator[UnsafeRowPair]

  override def reusableIterator(family: String): ReusableIterator[UnsafeRowPair] = new ReusableIterator[UnsafeRowPair] {
    // Spark walks a new one from the start, and seeks only when it walks again.
    private var pairs: Iterator[UnsafeRowPair] = VersionedStateStore.this.iterator(family)
    override def refreshAndSeekToPrefix(prefix: UnsafeRow): Unit = pairs = pairsFrom(prefix, family)
    override def hasNext: Boolean = pairs.hasNext
    override def next(): UnsafeRowPair = pairs.next()
    override def close(): Unit = pairs = Iterator.empty
  }

  override def registerColFamily(
      name: String,
      keySchema: StructType,
      valueSchema: StructType,
      spec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean
  ): Unit =
    createColFamilyIfAbsent(name, keySchema, valueSchema, spec, useMultipleValuesPerKey, isInternal)
}

/** Spark 4.3: maintenance has hooks for snapshots and for cleaning up. */
abstract class VersionedStateStoreProvider extends RocksDBStateStoreProvider {
  override def doMaintenance(): Unit = ()
  override def doSnapshotMaintenance(): Unit = ()
  override def doCleanupMaintenance(): Unit = ()
}
