package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.{Executor, ScheduledExecutorService, TimeUnit}

import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.penstock.SchedulerAttempts
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.state.{QueryDescription, StateDirectory}
import org.apache.spark.util.ThreadUtils

import io.penstock.errors.PenstockException
import io.penstock.routing.Division
import io.penstock.sharding.Layout
import io.penstock.state.format._
import io.penstock.telemetry.{MovedState, StateLoad}

/**
 * The commits of one query run, on the driver: collects what tasks tell and makes a batch's state durable with one
 * manifest, before the last of its tasks may finish. Docs: PROTOCOL.md, "Commit".
 *
 * No lock is held while a file is read or written, since Spark's scheduler asks here where shards are.
 *
 * @param shardCount
 *   S
 * @param wantedShards
 *   number of shards that the application asks for, if it does
 * @param report
 *   tells Spark that a state partition of a store has committed a version, where Spark counts
 * @param attempts
 *   what Spark says of attempts
 * @param writers
 *   where manifests are written, one at a time
 */
final class QueryCommits(
    val runId: UUID,
    val stateRoot: String,
    shardCount: Int,
    hadoopConf: Configuration,
    wantedShards: Option[Int] = None,
    report: (StoreKey, Int, Long) => Unit = (_, _, _) => (),
    attempts: AttemptStates = SchedulerAttempts,
    writers: Executor = _.run()
) extends Logging {
  import OpenBatch.Noted._
  import QueryCommits._

  private val directory = new StateDirectory(stateRoot, hadoopConf)
  private val minBatches =
    hadoopConf.getInt(SQLConf.MIN_BATCHES_TO_RETAIN.key, SQLConf.MIN_BATCHES_TO_RETAIN.defaultValue.get)
  private val cleaner = new StateCleaner(directory, minBatches)
  @volatile private var batch: OpenBatch = _

  /**
   * Newest generation of each batch's manifest as this run found it. Only batches that an earlier run has tried have
   * one: to list the folder again in every batch would be slow where a file system is far away.
   */
  private def earlier: Map[Long, Long] = {
    if (found == null) found = directory.newestGenerations()
    found
  }
  private var found: Map[Long, Long] = _

  /** A commit that is answered with a manifest of so many commits, or more. */
  final private class Waiting(val commits: Long, val answer: Try[Unit] => Unit)

  private val waiting = mutable.Buffer[Waiting]()
  private var isWriting = false

  private val ahead = new ManifestAhead(directory, writers)

  /** Of who writes manifests. */
  private var partitionsAreSure = false
  private val owners = mutable.Map[Long, Array[String]]()

  /** Executors that have a second copy of shards, as the batch before the last that they told of had left them. */
  private val replicas = mutable.Map[Long, Array[String]]()
  private val transferAddresses = mutable.Map[String, Map[String, String]]()
  private val loads = new StateLoads
  private val moved = mutable.Map[Long, MovedState]()
  private val snapshots = mutable.Map[(StoreKey, Int), SnapshotRef]()
  @volatile private var newest: Option[Manifest] = None
  @volatile private var written = StateReport.Empty

  /**
   * Starts a batch: from here on commits of the batch before are refused. Idempotent per batch.
   *
   * @param layouts
   *   of the state of each region in the batch; asked for when the batch before is known to be good, once
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

  /** The run has ended. Waits for nothing. */
  def ended(): Unit = ahead.cancel()

  /** From here on commits of the batch are refused. Waits for a manifest that is being written. */
  private def close(): Unit = synchronized {
    if (batch != null) batch.closed = true
    while (isWriting) wait()
  }

  /**
   * Takes the commit of a task attempt. It is answered when the state of the whole batch is durable, if this was the last one,
   * and at once otherwise. Waits for no file itself.
   *
   * @param answer
   *   gets, now or later, what becomes of it; failures are
   *   - PENSTOCK_BATCH_CLOSED for an attempt of a batch that is over
   *   - PENSTOCK_COMMIT_DENIED where another attempt counts
   *   - what kept the manifest from being written
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
      case Success(_: Undecided) => later(() => committed(c, sinceNs, answer))
      case Success(_: Waits) => if (write) writers.execute(() => writeManifests())
    }
  }

  private def verifyOpen(c: TaskCommitted): Unit =
    if (batch == null || batch.closed || c.batchId != batch.spec.batchId) {
      throw new PenstockException(
        "PENSTOCK_BATCH_CLOSED",
        s"${c.attempt} commits batch ${c.batchId} of run $runId, but the query is at batch " +
          s"${if (batch == null) "none" else batch.spec.batchId}: the attempt came too late and counts for nothing"
      )
    }

  private def denied(attempt: TaskAttempt, by: TaskAttempt) = new PenstockException(
    "PENSTOCK_COMMIT_DENIED",
    s"$attempt commits state that $by has committed already: Spark counts that one, and this one ends"
  )

  /** Takes note of where the shards of a commit are now. */
  private def locate(c: TaskCommitted): Unit = {
    if (c.sidecar.isEmpty) transferAddresses -= c.executor else transferAddresses(c.executor) = c.sidecar
    for ((region, stores) <- c.stores.groupBy(s => batch.regionOf(s.store.operatorId)); r <- region) {
      val of = owners.get(r).filter(_.length >= batch.layout(r).shards).getOrElse {
        java.util.Arrays.copyOf(ownersOf(r), batch.layout(r).shards)
      }
      moved(r) = stores.foldLeft(movedOf(r))((sum, s) =>
        sum + MovedState(bytesFromOthers(of, s, c.executor), s.loadNs, s.brought)
      )
      stores.foreach { s =>
        s.shards.foreach(own(r, of, _, c.executor))
        loads.told(r, s)
      }
      owners(r) = of
    }
  }

  /**
   * What an executor that ends is to hand over: what it has in memory, to those that have shards as well, by size. Nothing where
   * there is nobody.
   *
   * @param executor
   *   as a task location
   */
  def handOver(executor: String): Seq[HandOver] = synchronized {
    val receivers = transferAddresses.keys.filter(_ != executor).toSeq.sorted
    if (batch == null || receivers.isEmpty || !transferAddresses.contains(executor)) Nil
    else
      for {
        region <- batch.spec.regions
        of = owners.getOrElse(region.region, Array.empty[String])
        shards = of.indices.filter(of(_) == executor)
        bytes = loads.bytesOf(region.region, of.length)
        (part, its) <- shards.zip(Division.of(shards.map(bytes(_)).toArray, receivers.size)).groupMap(_._2)(_._1).toSeq
        some <- its.grouped(offeredAtOnce(region))
        stores = region.stores.flatMap(key => batch.held(key, some))
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
   * What executors are to be told so that shards come to them while the batch that is open begins: from each that has some of
   * them to each that is to have them.
   *
   * @param to
   *   shards in the order in which they matter, each with the executor that is to have it, as a task location
   * @return
   *   offers in that order, each with the executor that is to be told
   */
  def offers(region: Long, to: Seq[(Int, String)]): Seq[(String, ShardOffer)] = synchronized {
    val of = owners.getOrElse(region, Array.empty[String])
    val ways = to.filter { case (s, executor) =>
      s < of.length && of(s) != executor && transferAddresses.contains(of(s))
    }
      .groupMap { case (s, executor) => (of(s), executor) }(_._1)
    for {
      ((from, executor), shards) <- ways.toSeq.sortBy(w => to.indexWhere(_._1 == w._2.head))
      r <- batch.spec.regions.find(_.region == region).toSeq
      some <- shards.grouped(offeredAtOnce(r))
      stores = r.stores.flatMap(key => batch.held(key, some))
      if stores.nonEmpty
    } yield executor -> ShardOffer(stateRoot, batch.layout(region).baseShards, from, transferAddresses(from), stores)
  }

  /** Shards of all stores of a region that an offer has room for. */
  private def offeredAtOnce(region: RegionSpec): Int = math.max(1, OfferedAtOnce / region.stores.size)

  /** Takes note of who has shards in memory now that another had. */
  def handedOver(m: ShardsHandedOver): Unit = synchronized {
    owners.get(m.region).foreach(of => m.shards.foreach(s => if (s < of.length && of(s) == m.from) of(s) = m.to))
  }

  /**
   * Takes note of shards that came to an executor ahead of a batch.
   *
   * @param batchId
   *   that batch
   * @param executor
   *   where they are now
   * @param shards
   *   each with the transport that brought it
   */
  def cameAhead(batchId: Long, region: Long, executor: String, shards: Seq[(Int, String)]): Unit = synchronized {
    owners.get(region).filter(_ => batchId == this.batchId).foreach { of =>
      val bytes = loads.bytesOf(region, of.length)
      // Who has committed a shard since has more of it.
      val known = shards.filter { case (s, _) => s < of.length && of(s) != executor && batch.isUntouched(region, s) }
      known.foreach { case (s, _) => own(region, of, s, executor) }
      val came = known.map(s => bytes(s._1)).sum
      moved(region) = movedOf(region) + MovedState(came, 0L, ahead = known.size, aheadBytes = came)
    }
  }

  /**
   * Takes note of shards that executors have a copy of, besides their owners.
   *
   * @param asked
   *   what the executor was told to take
   * @param shards
   *   what it has of that
   */
  def copied(region: Long, executor: String, asked: Seq[Int], shards: Seq[Int]): Unit = synchronized {
    val of = replicasFor(region, asked.maxOption.getOrElse(-1))
    val has = shards.toSet
    asked.foreach(s => if (has(s)) of(s) = executor else if (of(s) == executor) of(s) = null)
  }

  /** What there is to be written to, with room for a shard. */
  private def replicasFor(region: Long, shard: Int): Array[String] = {
    val known = replicas.getOrElse(region, Array.empty[String])
    if (shard >= known.length) replicas(region) = java.util.Arrays.copyOf(known, shard + 1)
    replicas.getOrElse(region, known)
  }

  /** Executor that has a copy of each shard besides its owner, as a task location; null, or no entry, where none has. */
  def replicasOf(region: Long): Array[String] = synchronized {
    replicas.get(region).fold(Array.empty[String])(_.clone())
  }

  /** An executor has a shard now; who had it keeps what it had for a while. */
  private def own(region: Long, owners: Array[String], shard: Int, executor: String): Unit = {
    val before = owners(shard)
    owners(shard) = executor
    if (before != null && before != executor) replicasFor(region, shard)(shard) = before
  }

  /** Size of what a commit's task had to bring from other executors. */
  private def bytesFromOthers(owners: Array[String], of: StoreCommit, executor: String): Long =
    of.shards.indices.filter { i =>
      val before = owners(of.shards(i))
      before != null && before != executor
    }.map(of.state.bytes(_)).sum

  /**
   * Takes note of snapshots: the next manifest refers to those that belong to the state's history.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SNAPSHOT_TOO_LATE where no manifest will refer to the file
   */
  def snapshotsWritten(m: SnapshotsWritten): Unit = synchronized {
    if (!Reachability.mayName(m.container, batchId, minBatches)) {
      throw new PenstockException(
        "PENSTOCK_SNAPSHOT_TOO_LATE",
        s"${m.container.path} of run $runId came when the query was at batch $batchId, and ${SQLConf.MIN_BATCHES_TO_RETAIN.key} " +
          s"is $minBatches: it may be gone by now. Where this comes again and again, raise that setting or use longer batches"
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

  /** What there is to tell of the state. Waits for nothing. */
  def report: StateReport =
    written.copy(
      lags = newest.fold(Seq.empty[SnapshotLag])(SnapshotLag.of),
      loads = loads.all,
      filesDeleted = cleaner.deleted
    )

  /** The batch that the query is at; -1 before the first. */
  def batchId: Long = Option(batch).fold(-1L)(_.spec.batchId)

  /** Task location of the executor that committed each shard last; null where unknown. */
  def ownersOf(region: Long): Array[String] = synchronized {
    owners.get(region).map(_.clone()).getOrElse(new Array[String](shardCount))
  }

  /** What the state of each shard of a region's stores amounts to, as told last. Waits for nothing. */
  def stateLoadsOf(region: Long): Map[StoreKey, StateLoad] = loads.of(region)

  /** State of a region that the newest batch had to bring to where its tasks run. */
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
          s"the checkpoint of $stateRoot has ${d.shardCount} shards, and $wanted are asked for; the number is fixed with a " +
            s"query's first batch: set spark.penstock.shards=${d.shardCount}, or start a new checkpoint"
        )
      }
    case None => directory.writeDescription(QueryDescription(shardCount, "penstock", directory.queryId))
  }

  private def verifyQuery(d: QueryDescription): Unit = {
    val id = directory.queryId
    if (d.queryId.nonEmpty && id.nonEmpty && d.queryId != id) {
      throw new PenstockException(
        "PENSTOCK_OTHER_QUERY",
        s"the state in $stateRoot was written by query ${d.queryId}, but the checkpoint around it is of query $id: two " +
          "checkpoints have been mixed. Nothing was changed. Put the state back where it belongs, or restore this checkpoint"
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
          s"batch $previous of run $runId ended although ${b.missing} did not commit state; a foreachBatch function " +
            "must read the whole of its Dataset in every batch: show, take, first and limit read a part, and isEmpty each " +
            "task's first row, for which a hash aggregation does all of its work and other operators do not. " +
            s"Nothing of batch $previous is kept: remove commits/$previous from the checkpoint to run it again"
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
                s"it has ${m.shardCount} shards, and the query $shardCount"
              )
            }
            m.copy(retainedFrom = math.max(m.retainedFrom, retainedSince(spec.batchId)))
          case None =>
            throw new PenstockException(
              "PENSTOCK_STATE_MISSING",
              s"batch ${spec.batchId} is to start from the state of batch $previous, but $stateRoot has no manifest of " +
                s"that batch. ${whatIsThere(previous)}"
            )
        }
    }
  }

  /**
   * What manifests of this batch and later ones say is retained, which this run takes over from another: whoever wrote them
   * may have kept less, and has deleted what is older.
   */
  private def retainedSince(batchId: Long): Long = earlier.filter(_._1 >= batchId).map { case (later, generation) =>
    try directory.readManifest(later, generation).retainedFrom
    catch {
      case e: PenstockException =>
        logInfo(
          s"The manifest $later.$generation of $stateRoot, which is written anew, cannot be read: ${e.getMessage}"
        )
        0L
    }
  }.maxOption.getOrElse(0L)

  private def whatIsThere(batchId: Long): String = earlier.keys.filter(_ < batchId).maxOption match {
    case Some(newest) =>
      s"The newest state is that of batch $newest: the checkpoint was copied while it was written, or files are missing. " +
        s"Restore manifests/$batchId.* and what it names; or delete the entries of offsets and commits later than $newest, " +
        "so that the later batches are computed again (a sink may get their rows a second time)"
    case None => "There is no older state: restore the checkpoint, or start a new one"
  }

  private def verifyStores(spec: BatchSpec, region: RegionSpec, base: Manifest): Unit =
    if (spec.batchId > 0) region.stores.foreach { key =>
      val found = base.stores.get(key)
      if (!found.exists(_.size == (if (region.single) 1 else base.layout(key).shards))) {
        val what = found.fold("no store")(shards => s"${shards.size} of $shardCount shards in store")
        throw new PenstockException(
          "PENSTOCK_STATE_MISSING",
          s"the state of batch ${spec.batchId - 1} in $stateRoot has $what ${key.storeName} of operator " +
            s"${key.operatorId}; the query has changed since: restart the one that wrote the checkpoint, or start a new one"
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

  /** Writes manifests until every commit that waits for one is in one. Commits that come meanwhile share the next. */
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
            // This thread may be of no more use.
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
    // A run that keeps more than the ones before has not what they deleted.
    val retainedFrom =
      math.max(batch.base.retainedFrom, Reachability.oldestRetained(batch.spec.batchId, minBatches))
    batch.fold(runId, retainedFrom, System.currentTimeMillis(), snapshots)
  }

  private def write(f: OpenBatch.Folded): Unit = {
    val spec = batch.spec
    val body = ManifestFormat.encode(f.manifest, f.own)
    if (!partitionsAreSure) {
      // What Spark's reader of state looks for: it has to be there with the state, also where a copy has lost it.
      for (r <- spec.regions; o <- r.operators)
        directory.ensurePartitions(o.operatorId, if (r.single) 1 else shardCount)
      partitionsAreSure = true
    }
    writeOnce(f.own, body, f.payload)
    val isFirst = synchronized {
      val none = batch.written.isEmpty
      batch.wrote(f, f.manifest.written(body.length))
      newest = batch.written
      none
    }
    if (spec.countedBySpark && isFirst) {
      for ((key, shards) <- f.manifest.stores; shard <- shards.indices.take(shardCount))
        report(key, shard, spec.batchId + 1)
    }
    cleaner.batchDurable(spec.batchId)
    logDebug(s"State of batch ${spec.batchId} of run $runId is durable, generation ${f.own.generation}")
  }

  /** Those that are in a manifest; where it could not be written, all of them that wait. */
  private def answer(outcome: Try[OpenBatch.Folded]): Unit = {
    val answered = synchronized {
      val (in, later) = waiting.toSeq.partition(w => outcome.fold(_ => true, w.commits <= _.commits))
      waiting.clear()
      waiting ++= later
      in
    }
    answered.foreach(_.answer(outcome.map(_ => ())))
  }

  /** A generation's number is used once, so a file of it that this run wrote is there because the write was repeated. */
  private def writeOnce(own: Container.InManifest, body: Array[Byte], payload: ByteSink): Unit =
    try ahead.write(own, body, payload)
    catch {
      case e: PenstockException
          if e.errorClass == "PENSTOCK_CONCURRENT_RUN" &&
            directory.readManifest(own.batchId, own.generation).runId == runId =>
        logWarning(s"${own.path} of run $runId was written, and then reported to be there already")
    }
}

private object QueryCommits {

  /** For so long an attempt waits for one of the same task that has committed before it, and still runs. */
  private val UndecidedNs = TimeUnit.SECONDS.toNanos(10)
  private val AskAgainMs = 50L

  /** A question of a sidecar has 512 KiB, and a shard up to 20 bytes of it. */
  private val OfferedAtOnce = 20000

  private lazy val clock: ScheduledExecutorService =
    ThreadUtils.newDaemonSingleThreadScheduledExecutor("penstock-undecided")

  private def later(work: Runnable): Unit = clock.schedule(work, AskAgainMs, TimeUnit.MILLISECONDS): Unit
}

/** As [[scala.util.Try]], for every error there is: who waits for an answer must get one. */
private object Attempted {
  def apply[A](body: => A): Try[A] =
    try Success(body)
    catch { case e: Throwable => Failure(e) }
}
