package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.execution.streaming.state.{RocksDBStateStoreProvider, StateStore}

/** Spark 4.2: readers do not register column families, and iterators are not reused. */
abstract class VersionedStateStore extends StateStore

/** Spark 4.2: maintenance has one hook. */
abstract class VersionedStateStoreProvider extends RocksDBStateStoreProvider
