package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.internal.SQLConf

import io.penstock.errors.PenstockException

/** What a query with Penstock's state must satisfy before its first batch. Everything here is fixed by its checkpoint. */
private[routing] object Preconditions {
  val MaxShards = 65536

  /**
   * @param shards
   *   S, the number of state partitions
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SHARD_COUNT, PENSTOCK_STRICT_DISTRIBUTION, PENSTOCK_CHECKPOINT_FORMAT
   */
  def check(conf: SQLConf, shards: Int): Unit = {
    if (shards > MaxShards) {
      throw new PenstockException(
        "PENSTOCK_SHARD_COUNT",
        s"The query has $shards state partitions; Penstock runs 1 to $MaxShards shards. Start it with a new checkpoint " +
          s"and ${SQLConf.SHUFFLE_PARTITIONS.key} (or spark.penstock.shards) in that range; 256 suits most queries."
      )
    }
    if (!conf.getConf(SQLConf.STATEFUL_OPERATOR_USE_STRICT_DISTRIBUTION)) {
      throw new PenstockException(
        "PENSTOCK_STRICT_DISTRIBUTION",
        s"${SQLConf.STATEFUL_OPERATOR_USE_STRICT_DISTRIBUTION.key} is false, expected true: without it a key's shard does " +
          "not follow from the key. It is fixed by the checkpoint, which an old Spark wrote, or was set by hand. Either remove " +
          "the setting and start the query with a new checkpoint, or go on with the old one as before: set " +
          s"${SQLConf.STATE_STORE_PROVIDER_CLASS.key} to the provider that wrote it, " +
          s"${SQLConf.STATE_STORE_PROVIDER_CLASS.defaultValue.get} unless it was set then."
      )
    }
    val format = conf.stateStoreCheckpointFormatVersion
    if (format != 1) {
      throw new PenstockException(
        "PENSTOCK_CHECKPOINT_FORMAT",
        s"${SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key} is $format; Penstock allows 1, because it names the " +
          "versions of state in a record of its own. Remove the setting, or set it to 1, and start the query with a new " +
          "checkpoint."
      )
    }
  }
}
