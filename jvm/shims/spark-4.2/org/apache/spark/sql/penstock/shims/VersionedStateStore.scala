package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark 4.2: a reader has no call of its own for column families. */
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

/** Spark 4.2: one maintenance hook. */
abstract class VersionedStateStoreProvider extends RocksDBStateStoreProvider {
  override def doMaintenance(): Unit = ()
}
