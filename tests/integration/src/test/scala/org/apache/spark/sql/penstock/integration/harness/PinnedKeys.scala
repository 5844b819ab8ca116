package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.routing.RoutingVersionLog
import org.apache.spark.sql.penstock.storage.StateDirectory

/** Pinned keys according to a checkpoint. */
object PinnedKeys {

  /** Number of pinned keys in all regions, in the newest routing version of a query that is not running. */
  def count(checkpoint: Path): Int = {
    val state = checkpoint.resolve("state")
    if (!Files.exists(state)) 0
    else new RoutingVersionLog(new StateDirectory(state.toString, new Configuration), 1).all.lastOption.fold(0)(
      _.pinSlots.values.map(_.flatten.size).sum
    )
  }
}
