package org.apache.spark.sql.penstock.telemetry

import scala.jdk.CollectionConverters._

import io.penstock.telemetry.TaskLoad

/** What the tasks of a region measured in one batch, by task. Only attempts that succeeded count. */
final class RegionLoad(val shardCount: Int) extends PartitionAccumulator[TaskLoad] {
  override protected def empty: RegionLoad = new RegionLoad(shardCount)

  def tasks: Seq[TaskLoad] = value.values.asScala.toSeq
}
