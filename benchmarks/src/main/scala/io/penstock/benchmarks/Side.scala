package io.penstock.benchmarks

import org.apache.spark.sql.penstock.benchmarks.PlannedBinding

/**
 * A side of a comparison: the state store provider, the number of state partitions and the number of tasks.
 *
 * @param mode
 *   Penstock's mode. `off` if plain Spark runs the query
 * @param boundAtBarrier
 *   whether shards are bound to tasks at the barrier, by the rows of the batch
 * @param routed
 *   whether Penstock routes all regions
 * @param inTurn
 *   whether tasks run their shards in turn
 * @param settings
 *   settings of the side's session
 * @param options
 *   options of the side's `writeStream`
 * @param providerClass
 *   state store provider that the checkpoint must name
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
) {

  /** Whether this is plain Spark. Penstock leaves a query with another state store provider alone. */
  def isPlain: Boolean = providerClass != Side.PenstockProvider
}

object Side {
  private val PenstockProvider = "io.penstock.PenstockStateStoreProvider"
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

  /** Plain Spark with a RocksDB provider that does not count rows, and need not read each key before it writes it. */
  def rocksdbWithoutCount(partitions: Int): Side = {
    val s = rocksdb(partitions)
    s.copy(
      name = s"rocksdb-without-count-$partitions",
      settings = s.settings + ("spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows" -> "false")
    )
  }

  /**
   * Penstock as it is configured by `spark.plugins` alone.
   *
   * @param options
   *   options of the query, `penstock.*`
   */
  def penstock(name: String, shards: Int, tasks: Int, options: Map[String, String] = Map.empty): Side =
    Side(
      name,
      PenstockProvider,
      shards,
      tasks,
      mode = "on",
      boundAtBarrier = true,
      routed = true,
      inTurn = false,
      Map.empty,
      options
    )

  /** Penstock with shards that are bound to tasks when the batch is planned. */
  def penstockWithoutBarrier(name: String, shards: Int, tasks: Int): Side =
    penstock(name, shards, tasks).copy(boundAtBarrier = false, settings = Map(PlannedBinding.Key -> "true"))

  /** Penstock's state store with as many shards as tasks, in a mode of Penstock. */
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
    // An internal key of Spark, which the plugin sets for the application.
    "spark.sql.streaming.internal.stateStore.partitions" -> n.toString
  )
}
