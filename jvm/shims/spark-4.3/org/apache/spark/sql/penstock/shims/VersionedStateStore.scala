package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark 4.3: a reader registers the column families that it reads. Iterators are not reused: Spark opens range scans. */
abstract class VersionedStateStore extends StateStore {

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
