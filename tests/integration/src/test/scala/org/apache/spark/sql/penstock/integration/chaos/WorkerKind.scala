package org.apache.spark.sql.penstock.integration.chaos

import org.apache.spark.sql.penstock.integration.harness.LocalCluster

/**
 * The kind of application that plays a scenario.
 *
 * @param conf
 *   Settings of the application, in addition to those of every cluster
 * @param maxPlays
 *   Number of scenarios that one process plays. Spark gives up a cluster whose executors die too often
 */
sealed abstract class WorkerKind(
    override val toString: String,
    val master: String,
    val isCluster: Boolean,
    val conf: Map[String, String],
    val maxPlays: Int
)

object WorkerKind {
  case object Local extends WorkerKind("local", "local[2,4]", isCluster = false, Map.empty, maxPlays = 100)
  private case object Calm
      extends WorkerKind("cluster", LocalCluster.Master, isCluster = true, Map.empty, maxPlays = 4)
  private case object Speculating
      extends WorkerKind(
        "speculating-cluster",
        LocalCluster.MasterOfTwoCores,
        isCluster = true,
        LocalCluster.Speculating,
        maxPlays = 4
      )

  def Cluster(speculation: Boolean): WorkerKind = if (speculation) Speculating else Calm

  /** The kind with the given name. */
  def of(name: String): WorkerKind = Seq(Local, Calm, Speculating)
    .find(_.toString == name)
    .getOrElse(throw new IllegalArgumentException(
      s"'$name' is not a kind of application; allowed: local, cluster, speculating-cluster"
    ))
}
