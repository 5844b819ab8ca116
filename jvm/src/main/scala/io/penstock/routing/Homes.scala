package io.penstock.routing

/**
 * Shards that are to go to other executors.
 *
 * @param to
 *   executor that each shard is to go to, as a task location; null where it stays, wherever that is by now
 * @param from
 *   executor that it was on, null where it was on none: what has moved since is not moved by this plan
 * @param reason
 *   why
 * @param tasks
 *   of the region, on each executor; empty where they go by cores
 */
final case class Homes(to: Array[String], from: Array[String], reason: String, tasks: Map[String, Int] = Map.empty)
