package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.{Executor, TimeUnit}

import scala.util.{Failure, Success, Try}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.penstock.SchedulerAttempts
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.format._
import io.penstock.telemetry.{MovedState, StateLoad}

/**
 * The commits of one query run, on the driver. Collects what tasks report and makes the state of a batch durable with
 * one manifest, before the last of its tasks may finish. Docs: PROTOCOL.md, "Commit".
 *
 * Its lock guards all parts except [[GroupCommit]], which has its own. No lock is held while a file is read or written,
 * because Spark's scheduler asks this class where shards are.
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
  private val starting = new StartingState(runId, directory, shardCount, wantedShards)
  private val manifests = new ManifestWriter(runId, directory, shardCount, writers)
  private val group = new GroupCommit(() => writeManifest(), writers)
  private val locations = new ShardLocations(shardCount)
  private val snapshots = new ReportedSnapshots(runId, minBatches)

  @volatile private var batch: OpenBatch = _
  @volatile private var newest: Option[Manifest] = None

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
      val base = stateBefore(spec)
      spec.regions.foreach(starting.verifyStores(spec, _, base))
      val next = new OpenBatch(spec, layouts, base, starting.generationOf(spec.batchId), attempts)
      synchronized {
        locations.beginBatch()
        batch = next
      }
      manifests.begin(next.nextManifest)
    }
    synchronized(spec.regions.map(r => r.region -> lease(spec, r, batch)).toMap)
  }

  /** Called when the run has ended. Does not wait. */
  def ended(): Unit = manifests.cancel()

  /** Closes the batch: its commits are rejected from here on. Waits for a manifest that is being written. */
  private def close(): Unit = {
    synchronized { if (batch != null) batch.closed = true }
    group.awaitIdle()
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
    val noted = Attempted(synchronized {
      verifyOpen(c)
      val noted = batch.note(c, waited)
      noted match {
        case Counts => locations.committed(c, batch)
        case Waits(commits) =>
          locations.committed(c, batch)
          group.add(commits, answer)
        case _ =>
      }
      noted
    })
    noted match {
      case Failure(e) => answer(Failure(e))
      case Success(Counts | Overtaken) => answer(Success(()))
      case Success(Denied(by)) => answer(Failure(denied(c.attempt, by)))
      case Success(_: Undecided) => clock.later(() => committed(c, sinceNs, answer))
      case Success(_: Waits) => group.start()
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

  /** Writes a manifest with the commits that count so far, and returns their number. */
  private def writeManifest(): Long = {
    val open = batch
    val spec = open.spec
    val folded = synchronized(fold(open))
    val bodyBytes = manifests.write(spec, folded)
    val isFirst = synchronized {
      val noneBefore = open.written.isEmpty
      open.wrote(folded, folded.manifest.written(bodyBytes))
      newest = open.written
      noneBefore
    }
    if (spec.countedBySpark && isFirst) {
      for ((key, shards) <- folded.manifest.stores; shard <- shards.indices.take(shardCount))
        report(key, shard, spec.batchId + 1)
    }
    cleaner.batchDurable(spec.batchId)
    logDebug(s"State of batch ${spec.batchId} of run $runId is durable, generation ${folded.own.generation}")
    folded.commits
  }

  private def fold(open: OpenBatch): OpenBatch.Folded = {
    val batchId = open.spec.batchId
    // A run that retains more batches than earlier runs lacks the files that they have deleted.
    val retainedFrom =
      math.max(open.base.retainedFrom, Reachability.oldestRetained(batchId, minBatches)).min(batchId)
    open.fold(runId, retainedFrom, System.currentTimeMillis(), snapshots.usableAt(batchId))
  }

  /**
   * State that a batch starts from.
   *
   * @throws io.penstock.errors.PenstockException
   *   if the state of the batch before is incomplete, missing or of another query
   */
  private def stateBefore(spec: BatchSpec): Manifest = {
    val previous = spec.batchId - 1
    Option(batch).filter(b => spec.batchId > 0 && b.spec.batchId == previous) match {
      case None => starting.before(spec.batchId)
      case Some(b) =>
        b.written.getOrElse(throw new PenstockException(
          "PENSTOCK_STATE_INCOMPLETE",
          s"batch $previous of run $runId ended although ${b.missing} did not commit state. A foreachBatch function " +
            "must read its whole Dataset in every batch: show, take, first and limit read only a part of it, and " +
            "isEmpty reads only the first row of each task, which is enough for a hash aggregation but not for other " +
            s"operators. No state of batch $previous is kept. To run it again, remove commits/$previous and " +
            s"offsets/${spec.batchId} from the checkpoint"
        ))
    }
  }

  private def lease(spec: BatchSpec, region: RegionSpec, batch: OpenBatch): RegionLease = {
    val base = batch.base
    val stores = region.stores.map { key =>
      val layout = base.layout(key)
      key -> BaseStore(layout, java.util.Arrays.copyOf(base.lineages(key), 2 * layout.shards))
    }
    val from = BaseState(base.generation, stores.toMap)
    val holders = locations.holdersOf(region.region)
    RegionLease(runId, stateRoot, spec.batchId, batch.layout(region.region), region, from, holders)
  }

  /**
   * The shards that a leaving executor is to hand over: all that it holds in memory, divided by size among the other
   * executors that can be asked for shards. Empty if there are none.
   *
   * @param executor
   *   task location of the leaving executor
   * @param getsTasks
   *   whether an executor gets tasks. One that does not is offered nothing
   */
  def handOver(executor: String)(getsTasks: String => Boolean): Seq[HandOver] = synchronized {
    if (batch == null) Nil else new ShardOffers(batch, locations).handOver(executor)(getsTasks)
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
    new ShardOffers(batch, locations).ahead(region, to)
  }

  /** Records that a leaving executor has handed shards over to another one. */
  def handedOver(m: ShardsHandedOver): Unit = synchronized(locations.handedOver(m))

  /**
   * Records shards that arrived at an executor before tasks needed them.
   *
   * @param batchId
   *   batch for which the shards were brought
   * @param executor
   *   executor that holds the shards now
   */
  def broughtAhead(batchId: Long, region: Long, executor: String, shards: Seq[Int]): Unit = synchronized {
    if (batchId == this.batchId) locations.broughtAhead(batch, region, executor, shards)
  }

  /**
   * Records the replicas that an executor holds after it was asked to take some.
   *
   * @param asked
   *   shards that the executor was asked to take
   * @param shards
   *   those of `asked` that it holds now
   */
  def copied(region: Long, executor: String, asked: Seq[Int], shards: Seq[Int]): Unit =
    synchronized(locations.copied(region, executor, asked, shards))

  /**
   * Records snapshots. The next manifest refers to those that belong to the state's history.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SNAPSHOT_TOO_LATE if no manifest may refer to the file any more
   */
  def snapshotsWritten(m: SnapshotsWritten): Unit = synchronized(snapshots.record(m, batchId))

  /** Report on the state of the run. Does not wait. */
  def report: StateReport = snapshots.totals.copy(
    lags = newest.fold(Seq.empty[SnapshotLag])(SnapshotLag.of),
    loads = locations.loads.all,
    filesDeleted = cleaner.deleted
  )

  /** The batch that the query is at; -1 before the first. */
  def batchId: Long = Option(batch).fold(-1L)(_.spec.batchId)

  /** Task location of the executor that committed each shard last; null if unknown. */
  def ownersOf(region: Long): Array[String] = synchronized(locations.ownersOf(region))

  /** Task location of the executor that holds a replica of each shard; null, or no entry, if there is none. */
  def replicasOf(region: Long): Array[String] = synchronized(locations.replicasOf(region))

  /** Newest load of each shard that tasks reported, for each store of a region. Does not wait. */
  def stateLoadsOf(region: Long): Map[StoreKey, StateLoad] = locations.loads.ofRegion(region)

  /** State of a region that the newest batch had to move to where its tasks run. */
  def movedOf(region: Long): MovedState = synchronized(locations.movedOf(region))
}

private object QueryCommits {

  /** How long a commit waits for another attempt of the same task that has committed before and is still running. */
  private val UndecidedNs = TimeUnit.SECONDS.toNanos(10)

}
