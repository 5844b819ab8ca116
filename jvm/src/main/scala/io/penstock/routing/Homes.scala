package io.penstock.routing

/**
 * Planned moves of shards between executors.
 *
 * @param to
 *   task location of each shard's new executor; null if the shard stays where it is
 * @param from
 *   task location of each shard's executor when the plan was made, null if it had none. A shard that has moved since
 *   then is not moved by this plan
 * @param reason
 *   reason for the plan
 * @param tasks
 *   number of the region's tasks on each executor; empty to divide tasks in proportion to cores
 */
final case class Homes(to: Array[String], from: Array[String], reason: String, tasks: Map[String, Int] = Map.empty)
