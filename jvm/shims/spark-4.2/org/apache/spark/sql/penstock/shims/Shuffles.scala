package org.apache.spark.sql.penstock.shims

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.ShuffleManager

object Shuffles {

  /** The manager of blocking shuffles. Spark 4.3 has another manager for pipelined shuffles. */
  def manager(env: SparkEnv): ShuffleManager = env.shuffleManager
}
