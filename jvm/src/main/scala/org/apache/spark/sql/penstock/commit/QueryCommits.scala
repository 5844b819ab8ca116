package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.{Executor, TimeUnit}

import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.penstock.SchedulerAttempts
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.storage.{QueryDescription, StateDirectory}

import io.penstock.errors.PenstockException
import io.penstock.routing.Division
import io.penstock.sharding.Layout
import io.penstock.state.format._
import io.penstock.telemetry.{MovedState, StateLoad}

/**
 * The commits of one query run, on the driver. Collects what tasks report and makes the state of a batch durable with
 * one manifest, before the last of its tasks may finish. Docs: PROTOCOL.md, "Commit".
 *
 * No lock is held while a file is read or written, because Spark's scheduler asks this class where shards are.
 *
 * @param shardCount
 *   S, the number of base shards
 * @param wantedShards
 *   number of shards that the application asks for; None if it does not
 * @param report
 *   reports to Spark that a state partition of a store has committed a version. Called only if Spark counts commits
 * @param attempts
 *   states of task attempts in Spark's scheduler
 * @param writers
 *   threads that write manifests, one manifest of the run at a time
 * @param newCleaner
 *   makes the cleaner of a directory, which retains that many batches
 * @param clock
 *   handles commits again that wait for another attempt
 */
final class QueryCommits(
    val runId: UUID,
    val stateRoot: String,
    shardCount: Int,
    hadoopConf: Configuration,
    wantedShards: Option[Int] = None,
    report: (StoreKey, Int, Long) => Unit = (_, _, _) => (),
    attempts: AttemptStates = SchedulerAttempts,
    writers: Executor = _.run(),
    newCleaner: (StateDirectory, Int) => StateCleaner = new StateCleaner(_, _),
    clock: CommitClock = new CommitClock
) extends Logging {
  import OpenBatch.Noted._
  import QueryCommits._

  private val directory = new StateDirectory(stateRoot, hadoopConf)
  private val minBatches =
    hadoopConf.getInt(SQLConf.MIN_BATCHES_TO_RETAIN.key, SQLConf.MIN_BATCHES_TO_RETAIN.defaultValue.get)
  private val cleaner = newCleaner(directory, minBatches)
  @volatile private var batch: OpenBatch = _

  /**
   * Newest generation of each batch's manifest that earlier runs have written. The folder is listed only once, because
   * listing it in every batch would be slow on a remote file system.
   */
  private def earlier: Map[Long, Long] = {
    if (found == null) found = directory.newestGenerations()
    found
  }
  private var found: Map[Long, Long] = _

  /** A commit that is answered once a manifest with at least `commits` commits is durable. */
  final private class Waiting(val commits: Long, val answer: Try[Unit] => Unit)

  private val waiting = mutable.Buffer[Waiting]()
  private var isWriting = false

  private val ahead = new ManifestAhead(directory, writers)

  /** Whether the folders of all state partitions exist. Used only by the thread that writes manifests. */
  private var partitionsEnsured = false
  private val owners = mutable.Map[Long, Array[String]]()

  /** Executor that holds a replica of each shard, by region. A replica may be older than the newest batch. */
  private val replicas = mutable.Map[Long, Array[String]]()
  private val transferAddresses = mutable.Map[String, Map[String, String]]()
  private val loads = new StateLoads
  private val moved = mutable.Map[Long, MovedState]()
  private val snapshots = mutable.Map[(StoreKey, Int), SnapshotRef]()
  @volatile private var newest: Option[Manifest] = None
  @volatile private var written = StateReport.Empty

  /**
   * Starts a batch. From here on, commits of the previous batch are rejected. Idempotent per batch.
   *
   * @param layouts
   *   layout of each region's state in the batch. Evaluated once, after the state of the previous batch was verified
   * @return
   *   lease of each region
   */
  def open(spec: BatchSpec)(layouts: => Map[Long, Layout]): Map[Long, RegionLease] = {
    if (batch == null || batch.spec.batchId != spec.batchId) {
      close()
      val base = if (spec.batchId == 0L) firstBatch() else stateBefore(spec)
      spec.regions.foreach(verifyStores(spec, _, base))
      val next = new OpenBatch(spec, layouts, base, earlier.getOrElse(spec.batchId, -1L), attempts)
      synchronized {
        val holding = (owners.valuesIterator ++ replicas.valuesIterator).flatten.toSet
        transferAddresses.filterInPlace((executor, _) => holding(executor))
        moved.clear()
        batch = next
      }
      ahead.begin(next.nextManifest)
    }
    synchronized(spec.regions.map(r => r.region -> lease(spec, r, batch)).toMap)
  }

  /** Called when the run has ended. Does not wait. */
  def ended(): Unit = ahead.cancel()

  /** Closes the batch: its commits are rejected from here on. Waits for a manifest that is being written. */
  private def close(): Unit = synchronized {
    if (batch != null) batch.closed = true
    while (isWriting) wait()
  }

  /**
   * Handles the commit of a task attempt. The last commit of a batch is answered when the state of the whole batch is
   * durable, and every other one at once. Does not wait for files.
   *
   * @param answer
   *   receives the outcome, now or later. Failures are
   *   - PENSTOCK_BATCH_CLOSED if the batch of the attempt is over
   *   - PENSTOCK_COMMIT_DENIED if another attempt counts
   *   - the error for which the manifest could not be written
   */
  def committed(c: TaskCommitted)(answer: Try[Unit] => Unit): Unit = committed(c, System.nanoTime(), answer)

  private def committed(c: TaskCommitted, sinceNs: Long, answer: Try[Unit] => Unit): Unit = {
    val waited = System.nanoTime() - sinceNs >= UndecidedNs
    var write = false
    val noted = Attempted(synchronized {
      verifyOpen(c)
      val noted = batch.note(c, waited)
      noted match {
        case Counts | _: Waits => locate(c)
        case _ =>
      }
      noted match {
        case Waits(commits) =>
          waiting += new Waiting(commits, answer)
          write = !isWriting
          isWriting = true
        case _ =>
      }
      noted
    })
    noted match {
      case Failure(e) => answer(Failure(e))
      case Success(Counts | Overtaken) => answer(Success(()))
      case Success(Denied(by)) => answer(Failure(denied(c.attempt, by)))
      case Success(_: Undecided) => clock.later(() => committed(c, sinceNs, answer))
      case Success(_: Waits) => if (write) writers.execute(() => writeManifests())
    }
  }

  private def verifyOpen(c: TaskCommitted): Unit =
    if (batch == null || batch.closed || c.batchId != batch.spec.batchId) {
      throw new PenstockException(
        "PENSTOCK_BATCH_CLOSED",
        s"${c.attempt} commits batch ${c.batchId} of run $runId, but the query is at batch " +
          s"${if (batch == null) "none" else batch.spec.batchId}. The commit was rejected because its batch is closed"
      )
    }

  private def denied(attempt: TaskAttempt, by: TaskAttempt) = new PenstockException(
    "PENSTOCK_COMMIT_DENIED",
    s"$attempt commits state that $by has already committed. Spark counts that attempt, so this one is rejected"
  )

  /** Records where the shards of a commit are now. */
  private def locate(c: TaskCommitted): Unit = {
    if (c.sidecar.isEmpty) transferAddresses -= c.executor else transferAddresses(c.executor) = c.sidecar
    for ((region, stores) <- c.stores.groupBy(s => batch.regionOf(s.store.operatorId)); r <- region) {
      val regionOwners = owners.get(r).filter(_.length >= batch.layout(r).shards).getOrElse {
        java.util.Arrays.copyOf(ownersOf(r), batch.layout(r).shards)
      }
      moved(r) = stores.foldLeft(movedOf(r))((sum, s) =>
        sum + MovedState(bytesFromOthers(regionOwners, s, c.executor), s.loadNs, s.brought)
      )
      stores.foreach { s =>
        s.shards.foreach(own(r, regionOwners, _, c.executor))
        loads.record(r, s)
      }
      owners(r) = regionOwners
    }
  }

  /**
   * The shards that a leaving executor is to hand over: all that it holds in memory, divided by size among the other
   * executors that can be asked for shards. Empty if there are none.
   *
   * @param executor
   *   task location of the leaving executor
   */
  def handOver(executor: String): Seq[HandOver] = synchronized {
    val receivers = transferAddresses.keys.filter(_ != executor).toSeq.sorted
    if (batch == null || receivers.isEmpty || !transferAddresses.contains(executor)) Nil
    else
      for {
        region <- batch.spec.regions
        regionOwners = owners.getOrElse(region.region, Array.empty[String])
        shards = regionOwners.indices.filter(regionOwners(_) == executor)
        bytes = loads.bytesOf(region.region, regionOwners.length)
        division = Division.of(shards.map(bytes(_)).toArray, receivers.size)
        (part, shardsOfPart) <- shards.zip(division).groupMap(_._2)(_._1).toSeq
        offered <- shardsOfPart.grouped(offeredAtOnce(region))
        stores = region.stores.flatMap(key => batch.held(key, offered))
        if stores.nonEmpty
      } yield {
        val offer =
          ShardOffer(stateRoot, batch.layout(region.region).baseShards, executor, transferAddresses(executor), stores)
        HandOver(
          runId,
          region.region,
          Holder(receivers(part), transferAddresses(receivers(part))),
          ShardOffer.encode(offer)
        )
      }
  }

  /**
   * Offers that bring shards to executors while the open batch begins: from each executor that holds some of them to
   * each one that is to receive them.
   *
   * @param to
   *   shards, most important first, each with the executor that is to receive it (a task location)
   * @return
   *   offers in that order, each with the executor that is to take its shards
   */
  def offers(region: Long, to: Seq[(Int, String)]): Seq[(String, ShardOffer)] = synchronized {
    val regionOwners = owners.getOrElse(region, Array.empty[String])
    val transfers = to.filter { case (s, executor) =>
      s < regionOwners.length && regionOwners(s) != executor && transferAddresses.contains(regionOwners(s))
    }
      .groupMap { case (s, executor) => (regionOwners(s), executor) }(_._1)
    for {
      ((from, executor), shards) <- transfers.toSeq.sortBy(t => to.indexWhere(_._1 == t._2.head))
      r <- batch.spec.regions.find(_.region == region).toSeq
      offered <- shards.grouped(offeredAtOnce(r))
      stores = r.stores.flatMap(key => batch.held(key, offered))
      if stores.nonEmpty
    } yield executor -> ShardOffer(stateRoot, batch.layout(region).baseShards, from, transferAddresses(from), stores)
  }

  /** Number of shards that fit into one offer, which names them for each store of the region. */
  private def offeredAtOnce(region: RegionSpec): Int = math.max(1, OfferedAtOnce / region.stores.size)

  /** Records that a leaving executor has handed shards over to another one. */
  def handedOver(m: ShardsHandedOver): Unit = synchronized {
    owners.get(m.region).foreach { regionOwners =>
      m.shards.foreach(s => if (s < regionOwners.length && regionOwners(s) == m.from) regionOwners(s) = m.to)
    }
  }

  /**
   * Records shards that arrived at an executor before tasks needed them.
   *
   * @param batchId
   *   batch for which the shards were brought
   * @param executor
   *   executor that holds the shards now
   * @param shards
   *   shards, each with the transport that brought it
   */
  def cameAhead(batchId: Long, region: Long, executor: String, shards: Seq[(Int, String)]): Unit = synchronized {
    owners.get(region).filter(_ => batchId == this.batchId).foreach { regionOwners =>
      val bytes = loads.bytesOf(region, regionOwners.length)
      // If a shard was committed since, the executor that committed it has the newer content.
      val moving = shards.filter { case (s, _) =>
        s < regionOwners.length && regionOwners(s) != executor && batch.isUntouched(region, s)
      }
      moving.foreach { case (s, _) => own(region, regionOwners, s, executor) }
      val movedBytes = moving.map(s => bytes(s._1)).sum
      moved(region) = movedOf(region) + MovedState(movedBytes, 0L, ahead = moving.size, aheadBytes = movedBytes)
    }
  }

  /**
   * Records the replicas that an executor holds after it was asked to take some.
   *
   * @param asked
   *   shards that the executor was asked to take
   * @param shards
   *   those of `asked` that it holds now
   */
  def copied(region: Long, executor: String, asked: Seq[Int], shards: Seq[Int]): Unit = synchronized {
    val regionReplicas = replicasFor(region, asked.maxOption.getOrElse(-1))
    val held = shards.toSet
    asked.foreach { s =>
      if (held(s)) regionReplicas(s) = executor
      else if (regionReplicas(s) == executor) regionReplicas(s) = null
    }
  }

  /** Replicas of a region for updating, with an entry for the shard. */
  private def replicasFor(region: Long, shard: Int): Array[String] = {
    val known = replicas.getOrElse(region, Array.empty[String])
    if (shard >= known.length) replicas(region) = java.util.Arrays.copyOf(known, shard + 1)
    replicas.getOrElse(region, known)
  }

  /** Task location of the executor that holds a replica of each shard; null, or no entry, if there is none. */
  def replicasOf(region: Long): Array[String] = synchronized {
    replicas.get(region).fold(Array.empty[String])(_.clone())
  }

  /** Makes an executor the owner of a shard. The previous owner keeps its copy for a while, as a replica. */
  private def own(region: Long, owners: Array[String], shard: Int, executor: String): Unit = {
    val before = owners(shard)
    owners(shard) = executor
    if (before != null && before != executor) replicasFor(region, shard)(shard) = before
  }

  /** Bytes of the shards of a commit that another executor owned before. */
  private def bytesFromOthers(owners: Array[String], commit: StoreCommit, executor: String): Long =
    commit.shards.indices.filter { i =>
      val before = owners(commit.shards(i))
      before != null && before != executor
    }.map(commit.state.bytes(_)).sum

  /**
   * Records snapshots. The next manifest refers to those that belong to the state's history.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SNAPSHOT_TOO_LATE if no manifest may refer to the file any more
   */
  def snapshotsWritten(m: SnapshotsWritten): Unit = synchronized {
    if (!Reachability.mayName(m.container, batchId, minBatches)) {
      throw new PenstockException(
        "PENSTOCK_SNAPSHOT_TOO_LATE",
        s"${m.container.path} of run $runId was reported when the query was at batch $batchId. With " +
          s"${SQLConf.MIN_BATCHES_TO_RETAIN.key}=$minBatches that file may already be deleted, so its snapshots are " +
          "not used. If this happens repeatedly, raise that setting or use longer batches"
      )
    }
    written = written.copy(
      snapshotFiles = written.snapshotFiles + 1,
      snapshotShards = written.snapshotShards + m.entries.size,
      snapshotBytes = written.snapshotBytes + m.entries.map(_.section.length.toLong).sum
    )
    m.entries.foreach { e =>
      val s = e.section
      snapshots((s.store, s.shard)) =
        SnapshotRef(e.version, e.lineage, SectionRef(m.container, m.payloadAt + s.offset, s.length, s.crc))
    }
  }

  /** Report on the state of the run. Does not wait. */
  def report: StateReport =
    written.copy(
      lags = newest.fold(Seq.empty[SnapshotLag])(SnapshotLag.of),
      loads = loads.all,
      filesDeleted = cleaner.deleted
    )

  /** The batch that the query is at; -1 before the first. */
  def batchId: Long = Option(batch).fold(-1L)(_.spec.batchId)

  /** Task location of the executor that committed each shard last; null if unknown. */
  def ownersOf(region: Long): Array[String] = synchronized {
    owners.get(region).map(_.clone()).getOrElse(new Array[String](shardCount))
  }

  /** Newest load of each shard that tasks reported, for each store of a region. Does not wait. */
  def stateLoadsOf(region: Long): Map[StoreKey, StateLoad] = loads.ofRegion(region)

  /** State of a region that the newest batch had to move to where its tasks run. */
  def movedOf(region: Long): MovedState = synchronized(moved.getOrElse(region, MovedState.Nothing))

  private def firstBatch(): Manifest = {
    describe()
    Manifest(-1L, -1L, -1L, 0L, runId, 0L, shardCount, Map.empty)
  }

  private def describe(): Unit = directory.readDescription() match {
    case Some(d) =>
      verifyQuery(d)
      (wantedShards.toSeq :+ shardCount).find(_ != d.shardCount).foreach { wanted =>
        throw new PenstockException(
          "PENSTOCK_SHARDS_CHANGED",
          s"the state in $stateRoot has ${d.shardCount} shards, but $wanted are requested. The number of shards is " +
            s"fixed by a query's first batch. Set spark.penstock.shards=${d.shardCount}, or use a new checkpoint " +
            "location"
        )
      }
    case None => directory.writeDescription(QueryDescription(shardCount, "penstock", directory.queryId))
  }

  private def verifyQuery(d: QueryDescription): Unit = {
    val id = directory.queryId
    if (d.queryId.nonEmpty && id.nonEmpty && d.queryId != id) {
      throw new PenstockException(
        "PENSTOCK_OTHER_QUERY",
        s"the state in $stateRoot was written by query ${d.queryId}, but the checkpoint that contains it belongs to " +
          s"query $id: two checkpoints have been mixed. Nothing was changed. Move the state back to the checkpoint " +
          "that it belongs to, or restore this checkpoint"
      )
    }
  }

  private def stateBefore(spec: BatchSpec): Manifest = {
    val previous = spec.batchId - 1
    val known = Option(batch).filter(b => b.spec.batchId == previous)
    known match {
      case Some(b) =>
        b.written.getOrElse(throw new PenstockException(
          "PENSTOCK_STATE_INCOMPLETE",
          s"batch $previous of run $runId ended although ${b.missing} did not commit state. A foreachBatch function " +
            "must read its whole Dataset in every batch: show, take, first and limit read only a part of it, and " +
            "isEmpty reads only the first row of each task, which is enough for a hash aggregation but not for other " +
            s"operators. No state of batch $previous is kept. To run it again, remove commits/$previous and " +
            s"offsets/${spec.batchId} from the checkpoint"
        ))
      case None =>
        describe()
        earlier.get(previous) match {
          case Some(g) =>
            val m = directory.readManifest(previous, g)
            if (m.shardCount != shardCount) {
              throw FileFormat.corrupt(
                directory.name(Container.InManifest(previous, g).path),
                FileFormat.HeaderBytes,
                s"it has ${m.shardCount} shards, but the query has $shardCount"
              )
            }
            m.copy(retainedFrom = math.max(m.retainedFrom, retainedSince(spec.batchId)))
          case None =>
            throw new PenstockException(
              "PENSTOCK_STATE_MISSING",
              s"batch ${spec.batchId} must start from the state of batch $previous, but $stateRoot has no manifest " +
                s"of that batch. ${remedy(previous)}"
            )
        }
    }
  }

  /**
   * Oldest batch that is retained according to manifests of this batch and later ones, which an earlier run has
   * written. That run may have retained less than this one does, and has deleted older files.
   */
  private def retainedSince(batchId: Long): Long = earlier.filter(_._1 >= batchId).map { case (later, generation) =>
    try directory.readManifest(later, generation).retainedFrom
    catch {
      case e: PenstockException =>
        logInfo(
          s"Manifest $later.$generation of $stateRoot cannot be read and is ignored, because its batch runs again: " +
            e.getMessage
        )
        0L
    }
  }.maxOption.getOrElse(0L)

  /** What to do if the manifest of a batch is missing. */
  private def remedy(batchId: Long): String = earlier.keys.filter(_ < batchId).maxOption match {
    case Some(newest) =>
      s"The newest state is that of batch $newest: the checkpoint was copied while it was written, or files are " +
        s"missing. Restore manifests/$batchId.* and the files that it names, or delete the entries of offsets and " +
        s"commits later than $newest, so that the later batches are computed again (a sink may receive their rows a " +
        "second time)"
    case None => "There is no older state. Restore the checkpoint, or use a new checkpoint location"
  }

  private def verifyStores(spec: BatchSpec, region: RegionSpec, base: Manifest): Unit =
    if (spec.batchId > 0) region.stores.foreach { key =>
      val found = base.stores.get(key)
      if (!found.exists(_.size == (if (region.single) 1 else base.layout(key).shards))) {
        val present = found.fold("no store")(shards => s"${shards.size} of $shardCount shards in store")
        throw new PenstockException(
          "PENSTOCK_STATE_MISSING",
          s"the state of batch ${spec.batchId - 1} in $stateRoot has $present ${key.storeName} of operator " +
            s"${key.operatorId}. The query has changed since the checkpoint was written. Start the query that wrote " +
            "it, or use a new checkpoint location"
        )
      }
    }

  private def lease(spec: BatchSpec, region: RegionSpec, batch: OpenBatch): RegionLease = {
    val base = batch.base
    val stores = region.stores.map { key =>
      val layout = base.layout(key)
      key -> BaseStore(layout, java.util.Arrays.copyOf(base.lineages(key), 2 * layout.shards))
    }
    val from = BaseState(base.generation, stores.toMap)
    val holders =
      owners.get(region.region).fold(Holders.Unknown)(Holders.of(_, replicasOf(region.region), transferAddresses))
    RegionLease(runId, stateRoot, spec.batchId, batch.layout(region.region), region, from, holders)
  }

  /** Writes manifests until they contain every commit that waits. Commits that arrive meanwhile share the next one. */
  @tailrec
  private def writeManifests(): Unit = {
    val folded = synchronized {
      if (waiting.isEmpty) {
        isWriting = false
        notifyAll()
        None
      } else Some(foldNow())
    }
    folded match {
      case None => ()
      case Some(f) =>
        val outcome = f.flatMap(f => Attempted(write(f)).map(_ => f))
        outcome match {
          case Failure(NonFatal(_)) | Success(_) =>
            answer(outcome)
            writeManifests()
          case Failure(fatal) =>
            // This thread may not be able to go on writing.
            synchronized {
              isWriting = false
              notifyAll()
            }
            answer(outcome)
            throw fatal
        }
    }
  }

  private def foldNow(): Try[OpenBatch.Folded] = Attempted {
    snapshots.filterInPlace((_, s) => Reachability.mayName(s.section.container, batch.spec.batchId, minBatches))
    // A run that retains more batches than earlier runs lacks the files that they have deleted.
    val retainedFrom =
      math.max(batch.base.retainedFrom, Reachability.oldestRetained(batch.spec.batchId, minBatches))
        .min(batch.spec.batchId)
    batch.fold(runId, retainedFrom, System.currentTimeMillis(), snapshots)
  }

  private def write(f: OpenBatch.Folded): Unit = {
    val spec = batch.spec
    val body = ManifestFormat.encode(f.manifest, f.own)
    if (!partitionsEnsured) {
      // Spark's state reader looks for these folders. A copy of a checkpoint may have lost them.
      for (r <- spec.regions; o <- r.operators)
        directory.ensurePartitions(o.operatorId, if (r.single) 1 else shardCount)
      partitionsEnsured = true
    }
    writeOnce(f.own, body, f.payload)
    val isFirst = synchronized {
      val noneBefore = batch.written.isEmpty
      batch.wrote(f, f.manifest.written(body.length))
      newest = batch.written
      noneBefore
    }
    if (spec.countedBySpark && isFirst) {
      for ((key, shards) <- f.manifest.stores; shard <- shards.indices.take(shardCount))
        report(key, shard, spec.batchId + 1)
    }
    cleaner.batchDurable(spec.batchId)
    logDebug(s"State of batch ${spec.batchId} of run $runId is durable, generation ${f.own.generation}")
  }

  /** Answers the commits that the manifest contains, or all commits that wait if it could not be written. */
  private def answer(outcome: Try[OpenBatch.Folded]): Unit = {
    val answered = synchronized {
      val (covered, later) = waiting.toSeq.partition(w => outcome.fold(_ => true, w.commits <= _.commits))
      waiting.clear()
      waiting ++= later
      covered
    }
    answered.foreach(_.answer(outcome.map(_ => ())))
  }

  /**
   * Writes a manifest. Each generation is used only once, so if the file already exists and is of this run, the file
   * system has repeated the write.
   */
  private def writeOnce(own: Container.InManifest, body: Array[Byte], payload: ByteSink): Unit =
    try ahead.write(own, body, payload)
    catch {
      case e: PenstockException
          if e.errorClass == "PENSTOCK_CONCURRENT_RUN" &&
            directory.readManifest(own.batchId, own.generation).runId == runId =>
        logWarning(s"${own.path} of run $runId was written, but the file system reported that it already existed")
    }
}

private object QueryCommits {

  /** How long a commit waits for another attempt of the same task that has committed before and is still running. */
  private val UndecidedNs = TimeUnit.SECONDS.toNanos(10)

  /** Most shards in one offer: a question to a sidecar has at most 512 KiB, and a shard takes up to 20 bytes of it. */
  private val OfferedAtOnce = 20000
}

/** Like [[scala.util.Try]], but catches every error, because a task that waits for an answer must get one. */
private object Attempted {
  def apply[A](body: => A): Try[A] =
    try Success(body)
    catch { case e: Throwable => Failure(e) }
}
