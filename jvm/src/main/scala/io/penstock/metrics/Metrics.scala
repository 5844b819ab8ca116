package io.penstock.metrics

import scala.collection.mutable.ArrayBuffer

import io.penstock.sidecars.transfer.Transports

/** Every metric of state, once: the same name wherever it is found. `docs/metrics.md` is generated from it. */
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
    "heap that state holds: shards, changes that wait for the next batch, and changes of running tasks"
  )
  val StateMaxBytes: Metric = entry("StateMaxBytes", Bytes, grows = false, Executor)(
    "heap that state may hold, `spark.penstock.state.maxBytes`"
  )
  val ShardsHeld: Metric = entry("ShardsHeld", Count, grows = false, Executor)("shards in memory, over all stores")
  val InternalKeys: Metric = entry("InternalKeys", Count, grows = false, Operator(_.internalKeys))(
    "keys in column families that are not the user's (indexes, timers); `numRowsTotal` has the user's"
  )
  val OverlayBytes: Metric = entry("OverlayBytes", Bytes, grows = false, Operator(_.overlayBytes), Executor)(
    "heap of changes that tasks have made and not yet handed over"
  )
  val ShardsInMemory: Metric =
    entry("ShardsInMemory", Count, grows = true, Operator(_.opened.inMemoryShards.toLong), Executor)(
      "shards that were opened as they lay in memory"
    )
  val ShardsFolded: Metric =
    entry("ShardsFolded", Count, grows = true, Operator(_.opened.foldedShards.toLong), Executor)(
      "shards brought to the batch's version in memory"
    )
  val ShardsTravelled: Metric =
    entry("ShardsTravelled", Count, grows = true, Operator(_.opened.travelledShards.toLong), Executor)(
      "shards that came from another executor's memory"
    )
  val ShardsTravelledBy: Map[String, Metric] = Transports.All.map { transport =>
    transport -> entry(s"ShardsTravelledBy${transport.capitalize}", Count, grows = true, Executor)(
      s"of these, by the transport `$transport`"
    )
  }.toMap
  val ShardsLoaded: Metric =
    entry("ShardsLoaded", Count, grows = true, Operator(_.opened.loadedShards.toLong), Executor)(
      "shards rebuilt from the checkpoint"
    )
  val ShardsCaughtUp: Metric =
    entry("ShardsCaughtUp", Count, grows = true, Operator(_.opened.caughtUpShards.toLong), Executor)(
      "shards in memory as an earlier batch had left them, to which later changes were added from the checkpoint"
    )
  val FoldTime: Metric =
    entry("FoldTimeMs", Milliseconds, grows = true, Operator(a => inMs(a.opened.foldNs)), Executor)(
      "time to bring shards to the batch's version in memory"
    )
  val LoadTime: Metric =
    entry("LoadTimeMs", Milliseconds, grows = true, Operator(a => inMs(a.opened.loadNs)), Executor)(
      "time to bring shards from another executor or from the checkpoint"
    )
  val CommitTime: Metric = entry("CommitTimeMs", Milliseconds, grows = true, Operator(a => inMs(a.commitNs)), Executor)(
    "time to write changes and to tell the driver"
  )
  val CommittedBytes: Metric = entry("CommittedBytes", Bytes, grows = true, Operator(_.committedBytes), Executor)(
    "changes that were committed"
  )
  val SnapshotFiles: Metric =
    entry("SnapshotFiles", Count, grows = true, Run(_.snapshotFiles), Executor)("snapshot files written")
  val SnapshotShards: Metric =
    entry("SnapshotShards", Count, grows = true, Run(_.snapshotShards), Executor)("shards in these files")
  val SnapshotBytes: Metric = entry("SnapshotBytes", Bytes, grows = true, Run(_.snapshotBytes), Executor)(
    "bytes of the shards in these files"
  )
  val SnapshotFailures: Metric = entry("SnapshotFailures", Count, grows = true, Executor)(
    "times that writing snapshots failed; it costs a longer chain of changes"
  )
  val StoreKeys: Metric = entry("StoreKeys", Count, grows = false, Store(_.load.keys.sum))(
    "entries of all column families but Spark's own, over all shards, before the changes of the batch"
  )
  val StoreBytes: Metric = entry("StoreBytes", Bytes, grows = false, Store(_.load.bytes.sum))("heap that these take")
  val StoreOperations: Metric = entry("StoreOperations", Count, grows = false, Store(_.load.operations.sum))(
    "reads, writes and scans in the batch, over all shards"
  )
  val SnapshotAge: Metric = entry("SnapshotAgeBatches", Batches, grows = false, Store(_.lag.ageBatches), Driver)(
    "batches since the oldest change that is in no snapshot, the largest of all shards"
  )
  val SnapshotLagChanges: Metric = entry("SnapshotLagChanges", Count, grows = false, Store(_.lag.changes), Driver)(
    "change sets that are in no snapshot: what a reload of all shards reads besides snapshots"
  )
  val SnapshotLagBytes: Metric =
    entry("SnapshotLagBytes", Bytes, grows = false, Store(_.lag.bytes), Driver)("bytes of these")
  val FilesDeleted: Metric = entry("FilesDeleted", Count, grows = true, Run(_.filesDeleted), Driver)(
    "files deleted from checkpoints because no retained batch needs them"
  )

  /** In the order of the documentation. */
  val all: Seq[Metric] = registry.toSeq

  /** Those that are found at an output. */
  def at(output: MetricOutput): Seq[Metric] = all.filter(_.outputs(output))

  /** Those that are read at an output, in the order of `at`, with their values. */
  def read[From](output: MetricOutput.Read[From], from: From): Seq[(Metric, Long)] = all.flatMap { metric =>
    metric.found.collectFirst { case v: Value[From @unchecked] if v.output eq output => metric -> v.of(from) }
  }
}
