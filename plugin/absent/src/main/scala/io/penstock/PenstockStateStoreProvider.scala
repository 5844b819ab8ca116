package io.penstock

import org.apache.spark.sql.penstock.absent.AbsentProvider

/** The provider under the name that checkpoints contain. */
class PenstockStateStoreProvider extends AbsentProvider
