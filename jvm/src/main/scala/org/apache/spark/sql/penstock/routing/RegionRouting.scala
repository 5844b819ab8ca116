package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.penstock.lease.{BatchLeases, BatchSpec, RegionLease, RegionSpec, StateReport}
import org.apache.spark.sql.penstock.telemetry.RegionLoad
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}

import io.penstock.conf.Mode
import io.penstock.routing.{Binding, BindingOutcome, Limited, PreferredExecutors, RoutingVersion}
import io.penstock.telemetry.{KeyShare, MovedState, StateLoad}

/**
 * One batch of a run, as routed: what its report shows.
 *
 * @param theta
 *   busiest task over mean that is aimed at
 * @param foreseen
 *   whether shards are bound by the batch's own load
 * @param state
 *   what there is to tell of the run's state when the report is read
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
 * @param text
 *   the key, for people
 * @param rows
 *   that the batch had of it
 * @param seen
 *   whether there was a row or state of it since it was pinned
 */
final case class PinnedKey(hash: Int, text: String, rows: Long, seen: Boolean)

/**
 * Driver side of one region in one batch.
 *
 * @param names
 *   of its operators, for people
 * @param reason
 *   why it is not routed; None where it is
 * @param inTurn
 *   why its tasks take what feeds it shard by shard; None where they do not
 * @param load
 *   what its tasks measure
 * @param plans
 *   what was planned of it
 * @param executorOf
 *   executor that each proposed task is meant for; empty where that is left open
 * @param limitedBefore
 *   by what the batches before were
 * @param textOf
 *   how a pinned hash is told, and whether a row or state of it was seen before this batch
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

  /** The keys that had much of the batch, the heaviest first. */
  def heavyKeys: Seq[KeyShare] = load.heavyKeys(barrier.decision.fold(0L)(_.rows.sum))

  /** How balanced the batch was, once its tasks have run; None where no shard was bound. */
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

  /** By what this batch and those before it are limited. */
  def limited: Limited = outcome.fold(limitedBefore)(o => limitedBefore.after(o.limit))

  /** The pinned keys, by shard, once the batch has run. */
  def pinned: Seq[PinnedKey] = {
    val isPresent = this.isPresent
    lease.layout.pinned.toSeq.sortBy(lease.layout.shardOf).map { hash =>
      val (text, seenBefore) = textOf(hash)
      PinnedKey(hash, text, rowsOf(hash), seenBefore || isPresent(hash))
    }
  }

  /** Whether the batch had a row of a pinned hash, or the state has an entry. */
  def isPresent: Int => Boolean = {
    lazy val stateKeys = StateLoad.sum(leases.stateLoads(batch.spec.runId, spec.region).values).keys
    hash => rowsOf(hash) > 0L || stateKeys.lift(lease.layout.shardOf(hash)).exists(_ > 0L)
  }

  private def rowsOf(hash: Int): Long = barrier.decision.fold(0L)(_.rows(lease.layout.shardOf(hash)))

  /** Tasks that have committed their shards on another executor than the one that they were meant for. */
  def elsewhere(decision: Decision): Int = {
    val owners = this.owners
    (0 until decision.binding.tasks).count { task =>
      decision.binding.taskOf.indexOf(task) match {
        case shard if shard < 0 || owners.lift(shard).forall(_ == null) => false
        case shard => executorOf.lift(task).exists(_ != owners(shard))
      }
    }
  }

  /** Reads, writes and scans of its state in the batch; None where no task has told. */
  def stateOperations: Option[Long] =
    Some(leases.stateLoads(batch.spec.runId, spec.region)).filter(_.nonEmpty).map(_.values.map(_.operations.sum).sum)

  /** State that the batch had to bring to where its tasks run. */
  def moved: Option[MovedState] = leases.moved(batch.spec.runId, spec.region)

  /** Executor that has the state of each shard, as a task location; null, or no entry, where unknown. */
  def owners: Array[String] =
    Option(leases.owners(batch.spec.runId, spec.region)).getOrElse(Array.empty)

  /**
   * Preferred locations of every task, once the binding can be decided: the executor that it is meant for. Where that is
   * left open the one that owns most of the task's state, as long as no executor is preferred by more tasks than its share,
   * since these would wait for each other; else the hosts that hold at least a fifth of the task's input.
   *
   * @param shuffleId
   *   of that input, where it is a shuffle
   *
   * @param executors
   *   how many executors there are
   */
  def locations(shuffleId: Option[Int], executors: Int): Array[Seq[String]] = {
    val decision = barrier.decide()
    val binding = decision.binding
    if ((binding eq decision.proposed) && executorOf.nonEmpty) executorOf.map(Seq(_)).toArray
    else byState(decision, shuffleId, executors)
  }

  private def byState(decision: Decision, shuffleId: Option[Int], executors: Int): Array[Seq[String]] = {
    val binding = decision.binding
    val preferred =
      PreferredExecutors.byState(binding, decision.rows, owners, (binding.tasks + executors - 1) / executors)
    lazy val inputs = shuffleId.map(MapOutput.hosts(_, binding))
    Array.tabulate(binding.tasks)(task => preferred(task).map(Seq(_)).orElse(inputs.map(_(task))).getOrElse(Nil))
  }
}

/** Where the input of a task is, by bytes. */
private object MapOutput {

  /** Spark's own limits for a single partition: beyond them, and below a fifth of the bytes, locality is not looked at. */
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
            val of = bytes(binding.taskOf(s))
            of(status.location.host) = of.getOrElse(status.location.host, 0L) + size
          }
        }
      }
    })
    bytes.map { of =>
      val all = of.values.sum
      of.toSeq.filter(_._2 >= Fraction * all).sortBy { case (host, n) => (-n, host) }.map(_._1)
    }
  }
}
