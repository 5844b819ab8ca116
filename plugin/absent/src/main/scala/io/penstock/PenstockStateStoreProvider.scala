package io.penstock

import org.apache.spark.sql.penstock.absent.AbsentProvider

/** By the name that checkpoints have for it. */
class PenstockStateStoreProvider extends AbsentProvider
