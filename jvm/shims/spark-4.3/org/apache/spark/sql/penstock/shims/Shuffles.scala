package org.apache.spark.sql.penstock.shims

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.ShuffleManager

object Shuffles {

  /** The manager of shuffles that have a barrier; Spark 4.3 has another one, for shuffles without. */
  def manager(env: SparkEnv): ShuffleManager = env.blockingShuffleManager
}
