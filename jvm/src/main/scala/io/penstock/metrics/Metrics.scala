package io.penstock.metrics

import scala.collection.mutable.ArrayBuffer

import io.penstock.transport.Transports

/** All metrics of state. A metric has the same name at all outputs. `docs/metrics.md` is generated from this list. */
object Metrics {
  import MetricOutput._
  import MetricUnit._

  val Prefix = "penstock"
  private val registry = ArrayBuffer.empty[Metric]

  private def entry(name: String, unit: MetricUnit, grows: Boolean, found: Found*)(meaning: String): Metric = {
    require(registry.forall(_.name != name), s"$name is declared twice")
    val metric = Metric(Prefix + name, unit, grows, found, meaning)
    registry += metric
    metric
  }

  private def inMs(ns: Long): Long = ns / 1000000L

  val StateBytes: Metric = entry("StateBytes", Bytes, grows = false, Executor)(
    "heap used by state: shards, committed changes that are not yet applied to shards, and changes of running tasks"
  )
  val StateMaxBytes: Metric = entry("StateMaxBytes", Bytes, grows = false, Executor)(
    "heap that state may use, as set by `spark.penstock.state.maxBytes`"
  )
  val ShardsHeld: Metric = entry("ShardsHeld", Count, grows = false, Executor)(
    "number of shards in memory, over all stores"
  )
  val InternalKeys: Metric = entry("InternalKeys", Count, grows = false, Operator(_.internalKeys))(
    "keys in internal column families (indexes, timers); `numRowsTotal` counts the user's keys"
  )
  val OverlayBytes: Metric = entry("OverlayBytes", Bytes, grows = false, Operator(_.overlayBytes), Executor)(
    "heap used by uncommitted changes of tasks"
  )
  val ShardsInMemory: Metric =
    entry("ShardsInMemory", Count, grows = true, Operator(_.opened.inMemoryShards.toLong), Executor)(
      "shards that were already in memory at the batch's version when they were opened"
    )
  val ShardsFolded: Metric =
    entry("ShardsFolded", Count, grows = true, Operator(_.opened.foldedShards.toLong), Executor)(
      "shards in memory to which the changes of a batch were applied when they were opened"
    )
  val ShardsTravelled: Metric =
    entry("ShardsTravelled", Count, grows = true, Operator(_.opened.travelledShards.toLong), Executor)(
      "shards that were received from another executor's memory"
    )
  val ShardsTravelledBy: Map[String, Metric] = Transports.All.map(_.name).map { transport =>
    transport -> entry(s"ShardsTravelledBy${transport.capitalize}", Count, grows = true, Executor)(
      s"shards that were received from another executor's memory by the transport `$transport`"
    )
  }.toMap
  val ShardsLoaded: Metric =
    entry("ShardsLoaded", Count, grows = true, Operator(_.opened.loadedShards.toLong), Executor)(
      "shards rebuilt from the checkpoint"
    )
  val ShardsCaughtUp: Metric =
    entry("ShardsCaughtUp", Count, grows = true, Operator(_.opened.caughtUpShards.toLong), Executor)(
      "shards that were in memory at an older version, to which later changes were applied from the checkpoint"
    )
  val FoldTime: Metric =
    entry("FoldTimeMs", Milliseconds, grows = true, Operator(a => inMs(a.opened.foldNs)), Executor)(
      "time spent applying changes to shards in memory"
    )
  val LoadTime: Metric =
    entry("LoadTimeMs", Milliseconds, grows = true, Operator(a => inMs(a.opened.loadNs)), Executor)(
      "time spent fetching shards from other executors or from the checkpoint"
    )
  val CommitTime: Metric = entry("CommitTimeMs", Milliseconds, grows = true, Operator(a => inMs(a.commitNs)), Executor)(
    "time spent writing changes and reporting them to the driver"
  )
  val CommittedBytes: Metric = entry("CommittedBytes", Bytes, grows = true, Operator(_.committedBytes), Executor)(
    "size of committed changes"
  )
  val SnapshotFiles: Metric =
    entry("SnapshotFiles", Count, grows = true, Run(_.snapshotFiles), Executor)("snapshot files written")
  val SnapshotShards: Metric =
    entry("SnapshotShards", Count, grows = true, Run(_.snapshotShards), Executor)("shards written in snapshot files")
  val SnapshotBytes: Metric = entry("SnapshotBytes", Bytes, grows = true, Run(_.snapshotBytes), Executor)(
    "size of the shards in snapshot files"
  )
  val SnapshotFailures: Metric = entry("SnapshotFailures", Count, grows = true, Executor)(
    "number of times that writing snapshots failed; shards then keep longer chains of changes, and nothing is lost"
  )
  val StoreKeys: Metric = entry("StoreKeys", Count, grows = false, Store(_.load.keys.sum))(
    "entries in all column families except Spark's internal ones, over all shards, before the changes of the batch"
  )
  val StoreBytes: Metric = entry("StoreBytes", Bytes, grows = false, Store(_.load.bytes.sum))(
    "heap used by the store's shards, before the changes of the batch"
  )
  val StoreOperations: Metric = entry("StoreOperations", Count, grows = false, Store(_.load.operations.sum))(
    "number of reads, writes and scans in the batch, over all shards"
  )
  val SnapshotAge: Metric = entry("SnapshotAgeBatches", Batches, grows = false, Store(_.lag.ageBatches), Driver)(
    "batches since the oldest change that is not in a snapshot, the maximum over all shards"
  )
  val SnapshotLagChanges: Metric = entry("SnapshotLagChanges", Count, grows = false, Store(_.lag.changes), Driver)(
    "change sets that are not in a snapshot; a reload of all shards reads them in addition to snapshots"
  )
  val SnapshotLagBytes: Metric =
    entry("SnapshotLagBytes", Bytes, grows = false, Store(_.lag.bytes), Driver)(
      "size of the change sets that are not in a snapshot"
    )
  val FilesDeleted: Metric = entry("FilesDeleted", Count, grows = true, Run(_.filesDeleted), Driver)(
    "files deleted from checkpoints because no retained batch needs them"
  )

  /** All metrics, in the order of the documentation. */
  val all: Seq[Metric] = registry.toSeq

  /** The metrics at an output. */
  def at(output: MetricOutput): Seq[Metric] = all.filter(_.outputs(output))

  /** The metrics that are read at an output, with their values, in the order of `at`. */
  def read[From](output: MetricOutput.Read[From], from: From): Seq[(Metric, Long)] = all.flatMap { metric =>
    metric.found.collectFirst { case v: Value[From @unchecked] if v.output eq output => metric -> v.read(from) }
  }
}
