package org.apache.spark.sql.penstock.absent

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/**
 * Stands for the provider of checkpoints that Penstock has written where the application runs without the plugin (see
 * `SessionsWithoutPlugin` of the bridge): the first that Spark asks of it fails with what to do. It is of the type that
 * Spark expects for all formats of such a checkpoint.
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
    "[PENSTOCK_NOT_ENABLED] This checkpoint was written by Penstock, which is installed here and switched off. Start the " +
      "application with --conf spark.plugins=io.penstock.PenstockPlugin, or in Python with " +
      "penstock.configure(SparkSession.builder). Nothing was changed."
  )
}
