package io.penstock

import org.apache.spark.sql.penstock.state.ShardedStateStoreProvider

/** The state store provider. Checkpoints contain the name of this class, so it must not change. */
class PenstockStateStoreProvider extends ShardedStateStoreProvider
