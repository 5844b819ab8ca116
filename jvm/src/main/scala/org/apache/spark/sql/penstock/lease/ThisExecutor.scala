package org.apache.spark.sql.penstock.lease

import org.apache.spark.SparkEnv
import org.apache.spark.scheduler.ExecutorCacheTaskLocation

/** The executor that this code runs in. */
private[penstock] object ThisExecutor {

  /** The executor as a task location, by which the driver names it. */
  def location: String = {
    val id = SparkEnv.get.blockManager.blockManagerId
    ExecutorCacheTaskLocation(id.host, id.executorId).toString
  }
}
