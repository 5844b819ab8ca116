package org.apache.spark.sql.penstock.routing

import java.util.UUID

import scala.collection.immutable.SortedMap
import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.penstock.lease.{BatchLeases, BatchSpec, RegionLease, RegionSpec}
import org.apache.spark.sql.penstock.telemetry.RegionLoad

import io.penstock.conf.{Mode, PolicyChoice, QuerySettings}
import io.penstock.control.Planner
import io.penstock.routing.{Binder, Epoch, TaskCountPolicy}
import io.penstock.telemetry.{RowCosts, ShardsMeasured}

/** A region as the rule found it. */
final private[routing] case class PlannedRegion(spec: RegionSpec, names: Seq[String], route: Route)

/**
 * Driver side of one run of a query: gives each batch its epoch and its regions, once, however often the batch is
 * planned, and carries the owners of shards from batch to batch. Holds one batch at a time.
 */
final private[routing] class RunRouting(
    session: SparkSession,
    runId: UUID,
    stateRoot: String,
    startedWith: QuerySettings,
    foreachBatch: Boolean,
    leases: BatchLeases,
    makeEpochs: => EpochLog
) extends Logging {
  private lazy val epochs = makeEpochs

  /** Of the batch that is planned. */
  private var settings = startedWith
  private var current: Option[BatchRouting] = None
  private val owners = mutable.Map.empty[Long, Array[Int]]
  private val costs = mutable.Map.empty[Long, RowCosts]
  private val told = mutable.Set.empty[Long]

  /** The routing of a batch. */
  def batch(batchId: Long, shards: Int, regions: Seq[PlannedRegion]): BatchRouting = synchronized {
    current.filter(b => b.spec.batchId == batchId && b.spec.regions == regions.map(_.spec)).getOrElse {
      remember()
      settings = RunTimeSettings.of(runId, startedWith)
      val spec = BatchSpec(runId, stateRoot, batchId, shards, regions.map(_.spec), countedBySpark = foreachBatch)
      // First, because it refuses a checkpoint that cannot be continued, to which nothing must be written.
      val opened = leases.open(session, spec)
      val epoch = epochOf(batchId, shards, regions)
      val routing = new BatchRouting(
        spec,
        settings.mode,
        settings.theta,
        settings.policy == PolicyChoice.Hybrid,
        epoch,
        () => leases.report(runId),
        routed(_, regions, opened)
      )
      current = Some(routing)
      routing.regions.foreach(tell)
      routing
    }
  }

  private def routed(
      batch: BatchRouting,
      regions: Seq[PlannedRegion],
      opened: Map[Long, RegionLease]
  ): Seq[RegionRouting] = regions.map { r =>
    val id = r.spec.region
    val reason = r.route match {
      case Route.Late(_) => None
      case Route.ByShard(why) => Some(why)
      case Route.Single => Some("its operator takes one partition")
    }
    val tasks = batch.epoch.tasks(id)
    val planning =
      if (reason.nonEmpty) None
      else RegionPlanning.of(settings, runId, id, batch.spec.batchId, tasks, cores, stateBytes(batch, id))
    val barrier = new RegionBarrier(
      batch.spec.shardCount,
      tasks,
      Binder.of(settings, batch.spec.batchId, id, planning.flatMap(_.taskOf)),
      owners.get(id),
      costs.get(id).flatMap(_.relative),
      settings.mode == Mode.Observe
    )
    val load = new RegionLoad(
      batch.spec.shardCount,
      if (settings.mode == Mode.Observe) batch.spec.shardCount else tasks,
      settings.reportKeys,
      load =>
        barrier.decision.foreach { decision =>
          post(batch, id, decision, load)
          planning.foreach(_.learn(decision, load))
        }
    )
    session.sparkContext.register(load)
    val reasons = planning.fold(PlanReasons())(_.reasons)
    new RegionRouting(batch, r.spec, r.names, reason, opened(id), leases, barrier, load, reasons)
  }

  /** Of each shard, 0 where it is not known. */
  private def stateBytes(batch: BatchRouting, region: Long): Array[Long] =
    leases.stateBytes(runId, region).padTo(batch.spec.shardCount, 0L)

  /** Tells listeners what the tasks of a region have measured. */
  private def post(batch: BatchRouting, region: Long, decision: Decision, load: RegionLoad): Unit = {
    val binding = decision.binding
    session.sparkContext.listenerBus.post(ShardsMeasured(
      runId,
      region,
      batch.spec.batchId,
      binding.tasks,
      binding.taskOf,
      decision.rows,
      load.busyOfShardsNs,
      stateBytes(batch, region)
    ))
  }

  /** Keeps what the last batch decided, and what its rows cost, and nothing else of it. */
  private def remember(): Unit = current.foreach(_.regions.foreach { r =>
    r.barrier.decision.foreach { d =>
      owners(r.spec.region) = d.proposed.taskOf
      costs.getOrElseUpdate(r.spec.region, new RowCosts(d.rows.length))
        .learn(d.rows, r.load.busyOfShardsNs)
    }
  })

  /**
   * A batch that is run again uses the epoch it had: it is older than the newest epoch, or it is the first batch of this
   * run, which the run before may have tried.
   */
  private def epochOf(batchId: Long, shards: Int, regions: Seq[PlannedRegion]): Epoch = {
    val inForce = epochs.inForce(batchId)
    val kept = if (current.isEmpty || epochs.settled(batchId)) inForce.map(_.tasks) else None
    val policy = TaskCountPolicy.of(settings, Planner.current.plan(runId, _).toOption.map(_.tasks))
    val tasks = SortedMap.from(regions.map { r =>
      val id = r.spec.region
      id -> (r.route match {
        case Route.Late(_) =>
          kept.flatMap(_.get(id)).getOrElse(policy.tasks(batchId, id, cores, shards))
        case Route.Single => 1
        case Route.ByShard(_) => shards
      })
    })
    val epoch =
      inForce.filter(e => e.tasks == tasks && e.shards == shards).getOrElse(epochs.append(batchId, shards, tasks))
    epochs.clean(batchId)
    epoch
  }

  /** Tasks that the application can run at once; 2, as Spark assumes, while no executor has registered. */
  private def cores: Int = {
    val context = session.sparkContext
    val now = context.maxNumConcurrentTasks(ResourceProfile.getOrCreateDefaultProfile(context.getConf))
    if (now > 0) now else 2
  }

  private def tell(region: RegionRouting): Unit = if (told.add(region.spec.region)) {
    val what = region.names.mkString(" + ")
    val how = region.reason match {
      case None => s"routed in ${region.batch.spec.shardCount} shards, mode ${settings.mode}, policy ${settings.policy}"
      case Some(why) if region.spec.single => s"not routed, one task: $why"
      case Some(why) => s"not routed, task = shard: $why"
    }
    logInfo(s"Penstock: run $runId, region ${region.spec.region} ($what) is $how")
  }
}
