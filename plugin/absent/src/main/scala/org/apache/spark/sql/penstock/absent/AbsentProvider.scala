package org.apache.spark.sql.penstock.absent

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Replaces Penstock's state store provider in applications that run without the plugin (see `SessionsWithoutPlugin` of
 * the bridge). The first method that Spark calls fails with an error that states what to do. The class has the type
 * that Spark expects for all formats of a checkpoint that Penstock has written.
 */
abstract class AbsentProvider extends RocksDBStateStoreProvider {
  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConfs: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]
  ): Unit = refuse()

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = refuse()

  override def supportedInstanceMetrics: Seq[StateStoreInstanceMetric] = refuse()

  private def refuse(): Nothing = throw new IllegalStateException(
    "[PENSTOCK_NOT_ENABLED] This checkpoint was written by Penstock, which is installed but not enabled. Start the " +
      "application with --conf spark.plugins=io.penstock.PenstockPlugin, or in Python with " +
      "penstock.configure(SparkSession.builder). Nothing was changed."
  )
}
