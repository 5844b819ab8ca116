package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark 4.3: readers register the column families that they read, and iterators can be reused. */
abstract class VersionedStateStore extends StateStore with SupportsReusableIterator {

  /** Entries of an ordered column family in key order, starting at a prefix of the key. */
  def pairsFrom(prefix: UnsafeRow, family: String): Iterator[UnsafeRowPair]

  override def reusableIterator(family: String): ReusableIterator[UnsafeRowPair] = new ReusableIterator[UnsafeRowPair] {
    // Spark reads a new iterator from the start, and seeks only before it reads it again.
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

/** Spark 4.3: maintenance also has hooks for snapshots and for cleaning up. */
abstract class VersionedStateStoreProvider extends RocksDBStateStoreProvider {
  override def doSnapshotMaintenance(): Unit = ()
  override def doCleanupMaintenance(): Unit = ()
}
