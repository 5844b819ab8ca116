package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark 4.2: readers have no separate method to register column families. */
abstract class VersionedStateStore extends StateStore {
  def registerColFamily(
      name: String,
      keySchema: StructType,
      valueSchema: StructType,
      spec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean
  ): Unit =
    createColFamilyIfAbsent(name, keySchema, valueSchema, spec, useMultipleValuesPerKey, isInternal)
}

/** Spark 4.2: maintenance has one hook. */
abstract class VersionedStateStoreProvider extends RocksDBStateStoreProvider {
  override def doMaintenance(): Unit = ()
}
