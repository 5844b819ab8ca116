package io.penstock.benchmarks

import org.apache.spark.sql.penstock.benchmarks.PlannedBinding

/**
 * One side of a comparison: who keeps the state, in how many state partitions, run by how many tasks.
 *
 * @param mode
 *   of Penstock; `off` where plain Spark runs the query
 * @param boundAtBarrier
 *   whether shards are bound to tasks by the batch's own counts
 * @param routed
 *   whether Penstock routes all state
 * @param inTurn
 *   whether tasks take shards, or what feeds them, one after the other
 * @param settings
 *   of the side's session
 * @param options
 *   of the side's `writeStream`
 * @param providerClass
 *   that the checkpoint must name
 */
final case class Side(
    name: String,
    providerClass: String,
    statePartitions: Int,
    tasks: Int,
    mode: String,
    boundAtBarrier: Boolean,
    routed: Boolean,
    inTurn: Boolean,
    settings: Map[String, String],
    options: Map[String, String]
)

object Side {
  private val ProviderKey = "spark.sql.streaming.stateStore.providerClass"
  private val SparkState = "org.apache.spark.sql.execution.streaming.state"

  /** Plain Spark, with each of its providers. */
  def stock(partitions: Int): Seq[Side] = Seq(hdfs(partitions), rocksdb(partitions), rocksdbChangelog(partitions))

  /** Plain Spark with the HDFS-backed provider, its default one. */
  def hdfs(partitions: Int): Side = plain(s"hdfs-$partitions", s"$SparkState.HDFSBackedStateStoreProvider", partitions)

  /** Plain Spark with the RocksDB provider as Spark configures it. */
  def rocksdb(partitions: Int): Side =
    plain(s"rocksdb-$partitions", s"$SparkState.RocksDBStateStoreProvider", partitions)

  /** Plain Spark with the RocksDB provider and changelog checkpoints, which write less in every batch. */
  def rocksdbChangelog(partitions: Int): Side = {
    val s = rocksdb(partitions)
    s.copy(
      name = s"rocksdb-changelog-$partitions",
      settings = s.settings + ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true")
    )
  }

  /** Plain Spark with the RocksDB provider, which is told not to count rows: without that it reads before it writes. */
  def rocksdbWithoutCount(partitions: Int): Side = {
    val s = rocksdb(partitions)
    s.copy(
      name = s"rocksdb-without-count-$partitions",
      settings = s.settings + ("spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows" -> "false")
    )
  }

  /**
   * Penstock as `spark.plugins` alone sets it up.
   *
   * @param options
   *   of the query, `penstock.*`
   */
  def penstock(name: String, shards: Int, tasks: Int, options: Map[String, String] = Map.empty): Side =
    Side(
      name,
      "io.penstock.PenstockStateStoreProvider",
      shards,
      tasks,
      mode = "on",
      boundAtBarrier = true,
      routed = true,
      inTurn = false,
      Map.empty,
      options
    )

  /** Penstock with shards bound to tasks when the batch is planned. */
  def penstockWithoutBarrier(name: String, shards: Int, tasks: Int): Side =
    penstock(name, shards, tasks).copy(boundAtBarrier = false, settings = Map(PlannedBinding.Key -> "true"))

  /** Penstock's state store in as many shards as tasks, where Penstock does what the mode says. */
  def inMode(mode: String, tasks: Int): Side = penstock(mode, tasks, tasks).copy(
    mode = mode,
    boundAtBarrier = mode != "off",
    settings = inPartitions(tasks) + ("spark.penstock.mode" -> mode)
  )

  private def plain(name: String, provider: String, partitions: Int): Side = Side(
    name,
    provider,
    partitions,
    partitions,
    mode = "off",
    boundAtBarrier = false,
    routed = false,
    inTurn = false,
    inPartitions(partitions) ++ Map(ProviderKey -> provider, "spark.penstock.mode" -> "off"),
    Map.empty
  )

  private def inPartitions(n: Int) = Map(
    "spark.sql.shuffle.partitions" -> n.toString,
    // Spark's own key, which the plugin sets for the application.
    "spark.sql.streaming.internal.stateStore.partitions" -> n.toString
  )
}
