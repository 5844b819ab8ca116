package io.penstock

import org.apache.spark.sql.penstock.state.ShardedStateStoreProvider

/** The provider's public name: checkpoints hold it, so it never changes. */
class PenstockStateStoreProvider extends ShardedStateStoreProvider
