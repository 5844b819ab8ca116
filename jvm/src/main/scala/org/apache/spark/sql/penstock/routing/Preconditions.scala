package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.internal.SQLConf

import io.penstock.errors.PenstockException

/** Conditions that a query with Penstock's state must satisfy. All of them are fixed by its checkpoint. */
private[routing] object Preconditions {
  val MaxShards = 65536

  /**
   * Checks the conditions.
   *
   * @param shards
   *   Number of state partitions
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SHARD_COUNT, PENSTOCK_STRICT_DISTRIBUTION, PENSTOCK_CHECKPOINT_FORMAT
   */
  def check(conf: SQLConf, shards: Int): Unit = {
    if (shards > MaxShards) {
      throw new PenstockException(
        "PENSTOCK_SHARD_COUNT",
        s"The query has $shards state partitions; Penstock supports 1 to $MaxShards. Start it with a new checkpoint " +
          s"and ${SQLConf.SHUFFLE_PARTITIONS.key} (or spark.penstock.shards) in that range; 256 suits most queries."
      )
    }
    if (!conf.getConf(SQLConf.STATEFUL_OPERATOR_USE_STRICT_DISTRIBUTION)) {
      throw new PenstockException(
        "PENSTOCK_STRICT_DISTRIBUTION",
        s"${SQLConf.STATEFUL_OPERATOR_USE_STRICT_DISTRIBUTION.key} is false but must be true: otherwise the key of a " +
          "row does not determine its shard. The value comes from a checkpoint of an old Spark version, or was set " +
          "manually. Either remove the setting and start the query with a new checkpoint, or continue the old " +
          s"checkpoint without Penstock: set ${SQLConf.STATE_STORE_PROVIDER_CLASS.key} to the provider that wrote " +
          s"it, which is ${SQLConf.STATE_STORE_PROVIDER_CLASS.defaultValue.get} unless another one was set."
      )
    }
    val format = conf.stateStoreCheckpointFormatVersion
    if (format != 1) {
      throw new PenstockException(
        "PENSTOCK_CHECKPOINT_FORMAT",
        s"${SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key} is $format; Penstock supports only 1, because it " +
          "records the versions of state itself. Remove the setting, or set it to 1, and start the query with a new " +
          "checkpoint."
      )
    }
  }
}
