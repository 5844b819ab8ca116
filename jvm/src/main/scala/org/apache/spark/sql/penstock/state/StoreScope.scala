package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.{ConcurrentLinkedQueue, TimeUnit}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.{KeyStateEncoderSpec, StateStoreId}
import org.apache.spark.sql.penstock.commit.TaskCommits
import org.apache.spark.sql.penstock.lease.TaskLeases.TaskLease
import org.apache.spark.sql.penstock.lease.ThisExecutor
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.sql.types.StructType

import io.penstock.conf.{Setting, Settings}
import io.penstock.errors.PenstockException
import io.penstock.sidecars.transfer.ExecutorTransfer
import io.penstock.state.engine.ShardState
import io.penstock.state.format._
import io.penstock.state.memory.{MemoryBound, SharedBytes}
import io.penstock.state.snapshot.SnapshotPlan
import io.penstock.telemetry.{MovedState, StateLoad, StoreTimings}

/** The shards that an open store may see, and the place where its changes go. */
trait StoreScope {

  /** Shards of the view, ascending. */
  def shards: Array[Int]

  /** One more than the largest possible shard id. */
  def shardCount: Int

  def extractor(
      name: String,
      keySchema: StructType,
      spec: KeyStateEncoderSpec,
      prefixedMain: => Boolean
  ): ShardExtractor

  /**
   * Brings the shards to the version of the store. The result is indexed by shard id. Its contents do not change until
   * `close`.
   */
  def open(timings: StoreTimings): Array[ShardState]

  /** Releases the shards. */
  def close(): Unit = ()

  /** Keys that move into and out of a shard between that version and the batch. To be called after `open`. */
  def moves(shard: Int): ShardMoves = ShardMoves.None

  /**
   * Commits the changes of this store.
   *
   * @param keys
   *   number of keys of each of `shards`
   * @param operations
   *   number of operations on each of `shards`
   */
  def commit(changes: ByteSink, sections: Seq[Section], keys: Array[Long], operations: Array[Long]): Unit

  /** The store and its task, for error messages. */
  def describe: String

  /** Bound on the heap that changes of the store may take. A store that is only read has no changes. */
  def memory: MemoryBound = MemoryBound.none

  /** Called when the task has committed the store, with the bytes of its changes and the time of the commit. */
  def countCommit(bytes: Long, ns: Long): Unit = ()
}

/** The scope of a task that holds a lease. */
final class LeasedScope(lease: TaskLease, id: StateStoreId, hadoopConf: Configuration, minDeltasForSnapshot: Int)
    extends StoreScope {
  private val region = lease.region
  private val key = StoreKey(id.operatorId, id.storeName)
  private val kind = region.spec.operators.find(_.operatorId == id.operatorId).get.kind
  private val directory = new StateDirectory(region.stateRoot, hadoopConf)
  private val layout = region.layout
  private val store = ShardStores.current.get(region.stateRoot, key, layout.baseShards)
  private val before = region.base.stores.getOrElse(
    key,
    throw new PenstockException(
      "PENSTOCK_UNPLANNED_STORE",
      s"operator ${id.operatorId} opens store ${id.storeName}, but the plan of batch ${region.batchId} does not " +
        "contain that store"
    )
  )

  private def setting[T](s: Setting[T]): T = Settings.lookedUp(s)(k => Option(hadoopConf.get(k)))

  private val sources = mutable.Map[Int, ShardState]()
  private val held = new ConcurrentLinkedQueue[ShardSlot.Opened]()
  private var loadNs = 0L
  private var brought = Map.empty[String, Int]

  override def shards: Array[Int] = lease.shards
  override def shardCount: Int = layout.shards
  override val memory: MemoryBound = StateMemory.current.bound
  override def countCommit(bytes: Long, ns: Long): Unit = ExecutorMetrics.current.committed(bytes, ns)
  override def describe: String =
    s"operator ${id.operatorId}, store ${id.storeName}, batch ${region.batchId}, task ${id.partitionId}"

  override def extractor(
      name: String,
      keySchema: StructType,
      spec: KeyStateEncoderSpec,
      prefixedMain: => Boolean
  ): ShardExtractor =
    if (region.spec.single) new ShardExtractor.Fixed(0)
    else ShardExtractor.of(kind, layout, name, keySchema, spec, prefixedMain)

  private def base(shard: Int): UUID = before.lineage(shard, layout)

  override def moves(shard: Int): ShardMoves =
    if (layout == before.layout) ShardMoves.None else ShardMoves.of(shard, layout, before.layout)(source)

  /** Content of a shard after the previous batch. In this batch, the shard may be leased to another task. */
  private def source(shard: Int): ShardState = sources.getOrElseUpdate(
    shard, {
      val lineage = before.lineage(shard)
      if (lineage == ShardRefs.NeverWritten) new ShardState
      else
        store.slot(shard).openIfHeld(lineage, region.batchId).map(hold).getOrElse {
          val start = System.nanoTime()
          try new ShardLoader(directory).loadOne(manifest, key, shard).content
          finally loadNs += System.nanoTime() - start
        }
    }
  )

  private def hold(opened: ShardSlot.Opened): ShardState = {
    held.add(opened)
    opened.content
  }

  override def close(): Unit = Iterator.continually(held.poll()).takeWhile(_ != null).foreach(_.close())

  override def open(timings: StoreTimings): Array[ShardState] = {
    val out = new Array[ShardState](layout.shards)
    try bring(out, timings)
    catch {
      case e: Throwable =>
        close()
        throw e
    } finally {
      loadNs += timings.loadNs
      val bySource = timings.travelled.toSeq :+
        (MovedState.Checkpoint -> timings.loadedShards) :+ (MovedState.Changes -> timings.caughtUpShards)
      brought = bySource.filter(_._2 > 0).toMap
      ExecutorMetrics.current.opened(timings)
    }
    requestSnapshots()
    out
  }

  private def requestSnapshots(): Unit = {
    val candidates = shards.iterator.flatMap(s => store.slot(s).snapshotCandidate).toSeq
    val budgetBytes = setting(Settings.StateSnapshotBytes) / layout.shards * shards.length
    SnapshotPlan
      .choose(candidates, region.batchId + id.partitionId, math.max(1, minDeltasForSnapshot), budgetBytes)
      .foreach(s => Snapshots.current.request(new SnapshotWriter.Request(region.runId, directory, key, store.slot(s))))
  }

  private def bring(out: Array[ShardState], timings: StoreTimings): Unit = {
    val start = System.nanoTime()
    val brought = mutable.ArrayBuffer[ShardSlot]()
    def take(shard: Int, load: => ShardSlot.Loaded)(count: ShardSlot.Source => Unit): Unit = {
      val slot = store.slot(shard)
      val opened = slot.open(base(shard), region.batchId)(load)
      out(shard) = hold(opened)
      count(opened.source)
      if (opened.source == ShardSlot.Brought) brought += slot
      try memory.verify()
      catch {
        // There was no memory, or the task was killed while it waited. What it has loaded is dropped, so that tasks of
        // other queries do not fail for it.
        case e: Throwable =>
          close()
          brought.foreach(_.forget())
          throw e
      }
    }
    def takeHere(shard: Int): Unit = take(shard, loadOne(shard)) {
      case ShardSlot.Folded => timings.foldedShards += 1
      case ShardSlot.Brought => timings.loadedShards += 1
      case ShardSlot.InMemory => timings.inMemoryShards += 1
    }
    val (here, missing) = shards.partition(s => store.slot(s).has(base(s)))
    here.foreach(takeHere)
    timings.foldNs = System.nanoTime() - start
    if (missing.nonEmpty) {
      try {
        awaitArrivals(missing)
        val (arrived, elsewhere) = missing.partition(s => store.slot(s).has(base(s)))
        arrived.foreach(takeHere)
        val left = travel(elsewhere) { (shard, answer, by) =>
          answer match {
            case ShardTravel.Content(loaded) => take(shard, loaded)(_ => timings.travelled(by) += 1)
            case ShardTravel.Changes(from, bytes) =>
              store.slot(shard).prepare(base(shard), from, new SharedBytes(bytes, store.memory), 0, bytes.length)
              take(shard, loadOne(shard))(_ => timings.travelled(by) += 1)
          }
        }
        val (caughtUp, toLoad) = left.partition(catchUp(left))
        caughtUp.foreach(s => take(s, loadOne(s))(_ => timings.caughtUpShards += 1))
        if (toLoad.nonEmpty)
          new ShardLoader(directory).load(manifest, key, toLoad)((s, l) => take(s, l)(_ => timings.loadedShards += 1))
      } finally timings.loadNs = System.nanoTime() - start - timings.foldNs
    }
  }

  /** Waits for shards that are on their way here, so that they are not asked for again. */
  private def awaitArrivals(shards: Array[Int]): Unit = {
    val untilNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ShardTravel.LimitMs.toLong)
    shards.foreach(store.slot(_).awaitArrival(untilNs))
  }

  /** Asks the executors that hold the shards in memory. Returns the shards that did not arrive. */
  private def travel(shards: Array[Int])(use: (Int, ShardTravel.Came, String) => Unit): Seq[Int] = {
    lazy val here = ThisExecutor.location
    // A pin slot may have another hash than in the previous batch.
    def holdersOf(shard: Int) =
      if (layout.continues(shard, before.layout)) region.holders.of(shard).filter(_.executor != here) else Nil
    val wanted = shards.toSeq.map(s => WantedShard(s, base(s), store.slot(s).lineage))
    new ShardTravel(region.stateRoot, key, ExecutorTransfer.current).bring(wanted, holdersOf)(use)
  }

  /**
   * Brings shards that are here at an older version up to date, by reading only the later changes from the checkpoint.
   * Returns the shards for which that was possible.
   */
  private def catchUp(shards: Seq[Int]): Set[Int] = {
    val held = shards.filter(store.slot(_).isHeld)
    if (held.isEmpty) Set.empty
    else {
      val refs = ShardLoader.refs(manifest, key, held, directory)
      val since = for (s <- held; lineage = store.slot(s).lineage; deltas <- refs(s).since(lineage))
        yield (s, lineage, deltas)
      val changes = new ShardLoader(directory).changes(manifest, key, since.map { case (s, _, deltas) => s -> deltas })
      val caughtUp =
        for ((s, lineage, _) <- since; sets <- changes.get(s) if store.slot(s).goOn(lineage, base(s), sets)) yield s
      caughtUp.toSet
    }
  }

  /** Loads one shard. Needed if another attempt has brought the shard to another lineage between `has` and `open`. */
  private def loadOne(shard: Int): ShardSlot.Loaded = new ShardLoader(directory).loadOne(manifest, key, shard)

  /** The manifest that the batch starts from. The cache checks it: the checkpoint may have been replaced. */
  private lazy val manifest: Manifest =
    ManifestCache.startingFrom(directory, region.batchId - 1, region.base.generation)(key, before.lineages)

  override def commit(
      changes: ByteSink,
      sections: Seq[Section],
      keys: Array[Long],
      operations: Array[Long]
  ): Unit = {
    val commits = TaskCommits.current(region, directory, setting(Settings.StateInlineBytes))
    val lineage = commits.lineage
    val state = StateLoad(shards.map(store.slot(_).contentBytes), keys, operations)
    commits.add(key, shards, state, loadNs, brought, changes, sections)
    val kept = new SharedBytes(changes.array, store.memory)
    sections.foreach(s => store.slot(s.shard).prepare(lineage, base(s.shard), kept, s.offset, s.length))
  }
}

/**
 * The scope of Spark's state reader: one state partition of a checkpoint, read outside of the query. Pinned keys appear
 * in the partition that they belong to by hash.
 *
 * @param from
 *   version to start from and to apply all later changes to; None to start from the newest usable snapshot
 */
final class ReadOnlyScope(id: StateStoreId, version: Long, from: Option[Long], hadoopConf: Configuration)
    extends StoreScope {
  private val shard = id.partitionId
  private lazy val history = ReadOnlyScope.history(id, version, hadoopConf)

  override def shards: Array[Int] = Array(shard)
  override def shardCount: Int = shard + 1
  override def describe: String = s"shard $shard of operator ${id.operatorId}, store ${id.storeName}, version $version"

  override def extractor(
      name: String,
      keySchema: StructType,
      spec: KeyStateEncoderSpec,
      prefixedMain: => Boolean
  ): ShardExtractor = new ShardExtractor.Fixed(shard)

  override def open(timings: StoreTimings): Array[ShardState] = {
    val out = new Array[ShardState](shardCount)
    out(shard) = from.fold(history.content(version))(history.replay(_, version))
    out
  }

  override def commit(
      changes: ByteSink,
      sections: Seq[Section],
      keys: Array[Long],
      operations: Array[Long]
  ): Unit = throw new UnsupportedOperationException(s"$describe is open for reading only")
}

object ReadOnlyScope {

  /**
   * The versions of a state partition up to version `end`.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_PARTITION_FOLDERS if readers would not read exactly the partitions of the state
   */
  def history(id: StateStoreId, end: Long, hadoopConf: Configuration): ShardHistory = {
    val history = new ShardHistory(
      new StateDirectory(id.checkpointRootLocation, hadoopConf),
      StoreKey(id.operatorId, id.storeName),
      id.partitionId,
      end
    )
    history.verifyPartitions()
    history
  }
}

object StoreScope {

  /**
   * The scope of a store that this thread opens now.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NOT_ENABLED if a streaming query opens its own state without a lease
   */
  def current(
      id: StateStoreId,
      version: Long,
      runId: Option[UUID],
      hadoopConf: Configuration,
      minDeltasForSnapshot: Int
  ): StoreScope =
    org.apache.spark.sql.penstock.lease.TaskLeases.find(id.operatorId) match {
      case Some(l) if runId.contains(l.region.runId) && l.region.batchId == version =>
        new LeasedScope(l, id, hadoopConf, minDeltasForSnapshot)
      case _ if !isOwnQuery(runId) => new ReadOnlyScope(id, version, None, hadoopConf)
      case _ =>
        throw new PenstockException(
          "PENSTOCK_NOT_ENABLED",
          s"the state in ${id.checkpointRootLocation} was written by Penstock and cannot be used without it: " +
            s"operator ${id.operatorId} opens its state, but no shards are leased to its task. Start the application " +
            "with spark.plugins=io.penstock.PenstockPlugin, on the driver and on every executor"
        )
    }

  /** Whether this task is one of the run's own. Spark runs them in a job group that is named after the run. */
  private def isOwnQuery(runId: Option[UUID]): Boolean = {
    val context = TaskContext.get()
    context != null && runId.exists(r => context.getLocalProperty("spark.jobGroup.id") == r.toString)
  }
}
