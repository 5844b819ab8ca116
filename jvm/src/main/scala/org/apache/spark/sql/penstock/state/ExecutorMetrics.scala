package org.apache.spark.sql.penstock.state

import com.codahale.metrics.{Counter, Gauge, MetricRegistry}
import io.penstock.context.{Component, ComponentKey, ExecutorContext}
import io.penstock.metrics.{Metric, Metrics}
import io.penstock.state.memory.MemoryBound
import io.penstock.telemetry.StoreTimings

/**
 * Metrics of the state in this executor, over all queries, for Spark's metrics system. Counters start at 0 with each
 * application.
 *
 * @param stores
 *   the shards of this executor
 * @param bound
 *   the bound on their memory
 */
final class ExecutorMetrics(stores: ShardStores, bound: MemoryBound) extends Component {
  import ExecutorMetrics.NanosecondCounter

  private val shardsInMemory, shardsFolded, shardsTravelled, shardsLoaded, shardsCaughtUp, committedBytes = new Counter
  private val travelledBy = Metrics.ShardsTravelledBy.map { case (transport, _) => transport -> new Counter }
  private val foldTime, loadTime, commitTime = new NanosecondCounter
  private val snapshotFiles, snapshotShards, snapshotBytes, snapshotFailures = new Counter

  private val all: Seq[(Metric, com.codahale.metrics.Metric)] = Seq(
    Metrics.StateBytes -> gauge(stores.memory.bytes),
    Metrics.StateMaxBytes -> gauge(bound.limitBytes),
    Metrics.ShardsHeld -> gauge(stores.all.valuesIterator.map(_.loaded.count(_.isHeld).toLong).sum),
    Metrics.OverlayBytes -> gauge(stores.memory.bytes - stores.all.valuesIterator.map(_.memory.bytes).sum),
    Metrics.ShardsInMemory -> shardsInMemory,
    Metrics.ShardsFolded -> shardsFolded,
    Metrics.ShardsTravelled -> shardsTravelled,
    Metrics.ShardsLoaded -> shardsLoaded,
    Metrics.ShardsCaughtUp -> shardsCaughtUp,
    Metrics.FoldTime -> foldTime,
    Metrics.LoadTime -> loadTime,
    Metrics.CommitTime -> commitTime,
    Metrics.CommittedBytes -> committedBytes,
    Metrics.SnapshotFiles -> snapshotFiles,
    Metrics.SnapshotShards -> snapshotShards,
    Metrics.SnapshotBytes -> snapshotBytes,
    Metrics.SnapshotFailures -> snapshotFailures
  ) ++ travelledBy.map { case (transport, counter) => Metrics.ShardsTravelledBy(transport) -> counter }

  def register(registry: MetricRegistry): Unit = all.foreach { case (m, value) => registry.register(m.name, value) }

  /** Counts the shards of a store that was opened, or whose opening failed halfway. */
  def opened(timings: StoreTimings): Unit = {
    shardsInMemory.inc(timings.inMemoryShards.toLong)
    shardsFolded.inc(timings.foldedShards.toLong)
    shardsTravelled.inc(timings.travelledShards.toLong)
    timings.travelled.foreach { case (transport, shards) => travelledBy.get(transport).foreach(_.inc(shards.toLong)) }
    shardsLoaded.inc(timings.loadedShards.toLong)
    shardsCaughtUp.inc(timings.caughtUpShards.toLong)
    foldTime.inc(timings.foldNs)
    loadTime.inc(timings.loadNs)
  }

  def committed(bytes: Long, ns: Long): Unit = {
    committedBytes.inc(bytes)
    commitTime.inc(ns)
  }

  def snapshotsWritten(shards: Int, bytes: Long): Unit = {
    snapshotFiles.inc()
    snapshotShards.inc(shards.toLong)
    snapshotBytes.inc(bytes)
  }

  def snapshotsFailed(): Unit = snapshotFailures.inc()

  private def gauge(value: => Long): Gauge[Long] = () => value

  /** Nothing: counters are numbers only. */
  override def held: Map[String, Long] = Map.empty

  override def close(): Unit = ()
}

object ExecutorMetrics extends ComponentKey[ExecutorMetrics](ExecutorContext) {

  /** Counts nanoseconds and shows milliseconds, so that many short times add up. */
  final private class NanosecondCounter extends Counter {
    override def getCount: Long = super.getCount / 1000000L
  }
}
