package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.routing.RoutingVersionLog
import org.apache.spark.sql.penstock.state.StateDirectory

/** Keys that have a shard of their own, by what a checkpoint says. */
object PinnedKeys {

  /** How many there are, in all regions, in the newest routing version of a query that does not run. */
  def count(checkpoint: Path): Int = {
    val state = checkpoint.resolve("state")
    if (!Files.exists(state)) 0
    else new RoutingVersionLog(new StateDirectory(state.toString, new Configuration), 1).all.lastOption.fold(0)(
      _.pinSlots.values.map(_.flatten.size).sum
    )
  }
}
