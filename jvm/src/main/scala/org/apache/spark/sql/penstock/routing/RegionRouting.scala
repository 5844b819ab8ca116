package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.penstock.lease.{BatchLeases, BatchSpec, RegionLease, RegionSpec, StateReport}
import org.apache.spark.sql.penstock.telemetry.RegionLoad
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}

import io.penstock.conf.Mode
import io.penstock.routing.{Binding, BindingOutcome, Limited, PreferredExecutors, RoutingVersion}
import io.penstock.telemetry.{KeyShare, MovedState, StateLoad}

/**
 * Routing of one batch of a run. The batch's report is made from it.
 *
 * @param spec
 *   The batch, as planned
 * @param mode
 *   Mode of the query in this batch
 * @param theta
 *   Largest accepted imbalance
 * @param foreseen
 *   Whether shards are bound by the load of this batch, and not by a plan made before it
 * @param routingVersion
 *   Routing version that the batch uses
 * @param state
 *   Returns the report on the run's state; called when the batch's report is read
 * @param makeRegions
 *   Makes the routing of the batch's regions
 */
final class BatchRouting(
    val spec: BatchSpec,
    val mode: Mode,
    val theta: Double,
    val foreseen: Boolean,
    val routingVersion: RoutingVersion,
    val state: () => StateReport,
    makeRegions: BatchRouting => Seq[RegionRouting]
) {
  val regions: Seq[RegionRouting] = makeRegions(this)

  def region(id: Long): RegionRouting = regions.find(_.spec.region == id).get
}

/**
 * A pinned key in a batch.
 *
 * @param hash
 *   Hash of the key
 * @param text
 *   Text of the key in reports
 * @param rows
 *   Number of rows of the key in the batch
 * @param seen
 *   Whether a row or state of the key was seen since it was pinned
 */
final case class PinnedKey(hash: Int, text: String, rows: Long, seen: Boolean)

/**
 * Driver side of one region in one batch.
 *
 * @param batch
 *   Routing of the batch that the region belongs to
 * @param spec
 *   The region, as planned
 * @param names
 *   Names of the region's operators, for reports
 * @param reason
 *   Why the region is not routed; None if it is routed
 * @param inTurn
 *   Why the region's tasks read their input one shard after the other; None if they do not
 * @param lease
 *   Lease of the region, for its tasks
 * @param leases
 *   Driver side of the leases
 * @param barrier
 *   Barrier of the region in this batch
 * @param load
 *   Measurements of the region's tasks
 * @param plans
 *   Reasons of the plan for the region
 * @param executorOf
 *   Executor that each task of the proposed binding is planned for; empty if Spark chooses the executors
 * @param limitedBefore
 *   What limited the balance of the batches before
 * @param textOf
 *   Text of a pinned hash in reports, and whether a row or state of it was seen before this batch
 */
final class RegionRouting(
    val batch: BatchRouting,
    val spec: RegionSpec,
    val names: Seq[String],
    val reason: Option[String],
    val inTurn: Option[String],
    val lease: RegionLease,
    val leases: BatchLeases,
    val barrier: RegionBarrier,
    val load: RegionLoad,
    val plans: PlanReasons,
    val executorOf: IndexedSeq[String],
    limitedBefore: Limited,
    textOf: Int => (String, Boolean)
) {

  /** The heavy keys of the batch, the heaviest first. */
  def heavyKeys: Seq[KeyShare] = load.heavyKeys(barrier.decision.fold(0L)(_.rows.sum))

  /**
   * How balanced the batch was, once its tasks have run; None if the region is not routed or no binding was decided.
   */
  def outcome: Option[BindingOutcome] = barrier.decision.filter(_ => reason.isEmpty).map { d =>
    BindingOutcome(
      d.imbalanceBefore,
      d.expectedImbalance,
      d.tolerated,
      d.moved,
      d.proposed.tasks,
      d.load.indexOf(d.load.max),
      d.heaviestShard,
      heavyKeys.headOption.map(k => (k.text, k.least))
    )
  }

  /** What limited the balance of this batch and of the batches before. */
  def limited: Limited = outcome.fold(limitedBefore)(o => limitedBefore.after(o.limit))

  /** The pinned keys, by shard, once the batch has run. */
  def pinned: Seq[PinnedKey] = {
    val isPresent = this.isPresent
    lease.layout.pinned.toSeq.sortBy(lease.layout.shardOf).map { hash =>
      val (text, seenBefore) = textOf(hash)
      PinnedKey(hash, text, rowsOf(hash), seenBefore || isPresent(hash))
    }
  }

  /** Whether the batch had a row of a pinned hash, or the state has an entry for it. */
  def isPresent: Int => Boolean = {
    lazy val stateKeys = StateLoad.sum(leases.stateLoads(batch.spec.runId, spec.region).values).keys
    hash => rowsOf(hash) > 0L || stateKeys.lift(lease.layout.shardOf(hash)).exists(_ > 0L)
  }

  private def rowsOf(hash: Int): Long = barrier.decision.fold(0L)(_.rows(lease.layout.shardOf(hash)))

  /** Number of tasks that committed their shards on another executor than the planned one. */
  def elsewhere(decision: Decision): Int = {
    val owners = this.owners
    (0 until decision.binding.tasks).count { task =>
      decision.binding.taskOf.indexOf(task) match {
        case shard if shard < 0 || owners.lift(shard).forall(_ == null) => false
        case shard => executorOf.lift(task).exists(_ != owners(shard))
      }
    }
  }

  /** Number of reads, writes and scans of the region's state in the batch; None if no task has reported. */
  def stateOperations: Option[Long] =
    Some(leases.stateLoads(batch.spec.runId, spec.region)).filter(_.nonEmpty).map(_.values.map(_.operations.sum).sum)

  /** State that the batch had to move to the executors of its tasks. */
  def moved: Option[MovedState] = leases.moved(batch.spec.runId, spec.region)

  /** Executor that has the state of each shard, as a task location; null or missing if unknown. */
  def owners: Array[String] =
    Option(leases.owners(batch.spec.runId, spec.region)).getOrElse(Array.empty)

  /**
   * Preferred locations of every task. Decides the binding, so it must be called only when that is possible. The
   * preferred location is the executor that the task is planned for. Without a plan it is the executor that owns most
   * of the task's state, but no executor is preferred by more tasks than its share, because these tasks would wait for
   * each other. Otherwise it is the hosts that hold at least a fifth of the task's input.
   *
   * @param shuffleId
   *   Id of the shuffle that the tasks read; None if they do not read a shuffle
   * @param executors
   *   Number of executors
   * @param getsTasks
   *   Whether an executor gets tasks. One that does not is preferred by no task
   */
  def locations(shuffleId: Option[Int], executors: Int, getsTasks: String => Boolean): Array[Seq[String]] = {
    val decision = barrier.decide()
    val binding = decision.binding
    if ((binding eq decision.proposed) && executorOf.nonEmpty) executorOf.map(Seq(_).filter(getsTasks)).toArray
    else {
      val owners = this.owners
      val live = owners.distinct.filter(o => o != null && getsTasks(o)).toSet
      byState(decision, shuffleId, executors, owners.map(o => if (live(o)) o else null))
    }
  }

  private def byState(
      decision: Decision,
      shuffleId: Option[Int],
      executors: Int,
      owners: Array[String]
  ): Array[Seq[String]] = {
    val binding = decision.binding
    val preferred =
      PreferredExecutors.byState(binding, decision.rows, owners, (binding.tasks + executors - 1) / executors)
    lazy val inputs = shuffleId.map(MapOutput.hosts(_, binding))
    Array.tabulate(binding.tasks)(task => preferred(task).map(Seq(_)).orElse(inputs.map(_(task))).getOrElse(Nil))
  }
}

/** Locates the input of tasks. */
private object MapOutput {

  /**
   * Spark's own limits: it ignores locality for more map tasks than this, and for hosts with a smaller fraction of the
   * input.
   */
  private val MaxMaps = 1000
  private val Fraction = 0.2

  def hosts(shuffleId: Int, binding: Binding): Array[Seq[String]] = {
    val tracker = SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]
    val bytes = Array.fill(binding.tasks)(scala.collection.mutable.HashMap.empty[String, Long])
    tracker.shuffleStatuses.get(shuffleId).foreach(_.withMapStatuses { statuses =>
      if (statuses.length < MaxMaps) statuses.filter(_ != null).foreach { status =>
        binding.taskOf.indices.foreach { s =>
          val size = status.getSizeForBlock(s)
          if (size > 0) {
            val bytesByHost = bytes(binding.taskOf(s))
            bytesByHost(status.location.host) = bytesByHost.getOrElse(status.location.host, 0L) + size
          }
        }
      }
    })
    bytes.map { bytesByHost =>
      val total = bytesByHost.values.sum
      bytesByHost.toSeq.filter(_._2 >= Fraction * total).sortBy { case (host, n) => (-n, host) }.map(_._1)
    }
  }
}
