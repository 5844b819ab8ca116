package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.penstock.routing.{ForeignExec, OpaqueExec, RoutingReportExec}

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

/**
 * State store provider and routing of a query.
 *
 * @param conf
 *   Session settings that select the engine
 * @param queryOptions
 *   Options of the query for each run, counted from 0
 * @param provider
 *   Provider class that the checkpoint must name
 * @param partitions
 *   Number of state partitions that the checkpoint must name
 */
final case class Engine(
    name: String,
    conf: Map[String, String],
    queryOptions: Int => Map[String, String],
    provider: String,
    partitions: Int,
    isPenstock: Boolean
) {

  def session(application: classic.SparkSession): classic.SparkSession = {
    val session = application.newSession()
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    session
  }

  /** Evidence in the query's checkpoint and last plan that another engine ran the query. */
  def contradictions(checkpoint: Path, plan: SparkPlan): Seq[String] = {
    val recorded = Engine.recordedConf(checkpoint)
    val expected = Map(Engine.ProviderKey -> provider, Engine.PartitionsKey -> partitions.toString)
    val ofConf = expected.toSeq.collect {
      case (key, value) if !recorded.get(key).contains(value) =>
        s"the checkpoint says $key=${recorded.getOrElse(key, "nothing")} instead of $value"
    }
    val ours = plan.collect { case node if Engine.isOurs(node) => node.nodeName }
    ofConf ++ Option.when(ours.nonEmpty && !isPenstock)(s"plain Spark's plan holds ${ours.mkString(", ")}")
  }
}

object Engine {
  val ProviderKey = "spark.sql.streaming.stateStore.providerClass"

  /** Name in the offset log for the number of state partitions, whatever setting it came from. */
  val PartitionsKey = "spark.sql.shuffle.partitions"

  /** Spark's setting for the number of state partitions, which the plugin sets for the application. */
  private val StatePartitionsKey = "spark.sql.streaming.internal.stateStore.partitions"

  /** Without this setting RocksDB writes a snapshot and starts a child process per store and batch. */
  private val RocksDbChangelogKey = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

  private val SparkState = "org.apache.spark.sql.execution.streaming.state"
  val RocksDb = s"$SparkState.RocksDBStateStoreProvider"
  val HdfsBacked = s"$SparkState.HDFSBackedStateStoreProvider"
  val PenstockProvider = "io.penstock.PenstockStateStoreProvider"

  /** Plain Spark with a state store provider. */
  def stock(provider: String, partitions: Int): Engine = Engine(
    s"${provider.split('.').last} with $partitions partitions",
    keeping(provider, partitions) ++ Map("spark.penstock.mode" -> "off", RocksDbChangelogKey -> "true"),
    _ => Map.empty,
    provider,
    partitions,
    isPenstock = false
  )

  /**
   * Penstock with a number of tasks, a binding, homes of shards and pinned keys that change at random in every batch
   * and run. Every other run has replicas.
   */
  def penstock(shards: Int, seed: Long): Engine = penstock(
    shards,
    run => {
      val chaos = s"chaos(${(seed + run) & 0xffff})"
      val replicas = 1 + ((seed + run) & 1)
      Map("penstock.policy" -> chaos, "penstock.tasks" -> chaos, "penstock.replicas" -> replicas.toString)
    }
  )

  /** Penstock with a policy that users choose. Policies of the papers plan for a constant number of tasks. */
  def penstock(shards: Int, policy: String): Engine =
    penstock(
      shards,
      _ => Map("penstock.policy" -> policy, "penstock.tasks" -> (if (policy == "hybrid") "auto" else "3"))
    )

  private def penstock(shards: Int, queryOptions: Int => Map[String, String]): Engine = Engine(
    s"Penstock with $shards shards",
    keeping(PenstockProvider, shards),
    queryOptions,
    PenstockProvider,
    shards,
    isPenstock = true
  )

  private def keeping(provider: String, partitions: Int): Map[String, String] = Map(
    ProviderKey -> provider,
    PartitionsKey -> partitions.toString,
    StatePartitionsKey -> partitions.toString
  )

  /**
   * Whether a node is Penstock's own, except for the node that reports progress, which passes all rows on unchanged.
   */
  def isOurs(node: SparkPlan): Boolean =
    node.getClass.getName.startsWith("org.apache.spark.sql.penstock") && (node match {
      case _: RoutingReportExec | _: ForeignExec | _: OpaqueExec => false
      case _ => true
    })

  /** The settings that the offset log of a checkpoint stores for the query. */
  def recordedConf(checkpoint: Path): Map[String, String] = {
    implicit val formats: Formats = DefaultFormats
    // Old entries are deleted, and all entries agree.
    val newest = QueryRun.logged(checkpoint, "offsets").last
    val metadata = Files.readAllLines(checkpoint.resolve("offsets").resolve(newest.toString)).get(1)
    (parse(metadata) \ "conf").extract[Map[String, String]]
  }
}
