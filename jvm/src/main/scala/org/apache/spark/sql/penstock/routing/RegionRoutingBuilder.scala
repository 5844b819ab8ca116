package org.apache.spark.sql.penstock.routing

import java.util.UUID

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.penstock.executors.LiveExecutors
import org.apache.spark.sql.penstock.lease.{BatchLeases, RegionLease}
import org.apache.spark.sql.penstock.telemetry.RegionLoad

import io.penstock.conf.{Mode, QuerySettings}
import io.penstock.control.Planner
import io.penstock.routing._
import io.penstock.telemetry.{ShardsMeasured, StateLoad}

/**
 * Makes the routing of one region in one batch, before its tasks run.
 *
 * @param session
 *   The query's own session
 * @param runId
 *   Id of the query's run
 * @param settings
 *   The query's settings in this batch
 * @param leases
 *   Driver side of the state layer
 * @param lease
 *   Lease of the region
 * @param known
 *   What the run knows about the region; None in its first batch
 * @param keptTasks
 *   Why the region keeps its number of tasks although the policy wants another one; None if it does not
 * @param whenComplete
 *   Called on the scheduler's thread when all tasks of the region have reported. Must not wait
 * @param textOf
 *   Text of a pinned hash in reports, and whether a row or state of it was seen before this batch
 */
final private[routing] class RegionRoutingBuilder(
    session: SparkSession,
    runId: UUID,
    settings: QuerySettings,
    leases: BatchLeases,
    batch: BatchRouting,
    planned: PlannedRegion,
    lease: RegionLease,
    known: Option[KnownRegion],
    keptTasks: Option[String],
    whenComplete: () => Unit,
    textOf: Int => (String, Boolean)
) {
  import planned.route

  private val id = planned.spec.region
  private val tasks = batch.routingVersion.tasks(id)
  private val layout = lease.layout
  private val before = known.map(_.in(layout))
  private val deadBand = known.fold(DeadBand.Empty)(_.deadBand)
  private val policyBatch =
    PolicyBatch(batch.spec.batchId, id, settings.theta, deadBand, acts = settings.mode == Mode.On)
  private val moveCost =
    if (lease.holders.all.isEmpty) MoveCost.FromCheckpoint else known.fold(MoveCost.Usual)(_.move)

  def build(): RegionRouting = {
    val tiered = homePolicy.flatMap(tieredRegion)
    val planning = PlanChoices.of(settings).filter(_ => route.unroutedReason.isEmpty).map(planningOf(_, tiered))
    val costs = planning.flatMap(_.rowTimes).map(_.relative(layout)).orElse(before.flatMap(_.trustedCosts))
    val barrier = barrierOf(tiered, planning, costs)
    if (settings.mode == Mode.On) tiered.foreach(sendAhead)
    new RegionRouting(
      batch,
      planned.spec,
      planned.names,
      route.unroutedReason,
      route.inTurnReason,
      lease,
      leases,
      barrier,
      loadOf(barrier, planning, costs.nonEmpty),
      reasonsOf(planning),
      executorOf(tiered),
      known.fold(Limited.Never)(_.limited),
      textOf
    )
  }

  /** Policy that divides tasks and shards among executors; None if the region is not routed or Spark chooses. */
  private def homePolicy: Option[HomePolicy] =
    if (route.unroutedReason.nonEmpty) None
    else {
      def homes = Planner.current.plan(runId, id).toOption.filter(_.isFresh(batch.spec.batchId)).flatMap(_.homes)
      settings.policy.homes(policyBatch, homes)
    }

  private def tieredRegion(policy: HomePolicy): Option[TieredRegion] = TieredRegion.of(
    executorsNow,
    tasks,
    layout,
    known,
    owners,
    if (settings.replicas > 1) leases.replicas(runId, id) else Array.empty,
    policy,
    stateBytes,
    settings.moveMaxBytesPerBatch,
    moveCost
  )

  private def planningOf(choices: PlanChoices, tiered: Option[TieredRegion]): RegionPlanning = new RegionPlanning(
    // A pinned key leaves its shard, which is impossible if inputs are read by shard.
    if (route.inTurnReason.isEmpty) choices else choices.copy(pins = None),
    RegionBatch(runId, id, batch.spec.batchId, tasks, batchesBefore = before.fold(0)(_.batches)),
    LiveExecutors.tasksAtOnce(session.sparkContext),
    stateBytes,
    RegionExecutors(
      tiered.fold(ExecutorSet.None)(_.executors),
      tiered.fold(0)(_.waiting),
      moveCost,
      () => executorsNow,
      () => owners,
      executorOf(tiered)
    )
  )

  private def barrierOf(
      tiered: Option[TieredRegion],
      planning: Option[RegionPlanning],
      costs: Option[Array[Double]]
  ): RegionBarrier = {
    val binder = tiered.fold(settings.policy.binder(policyBatch, planning.flatMap(_.taskOf)))(
      _.binder(settings.theta, deadBand)
    )
    new RegionBarrier(layout.shards, tasks, binder, before.map(_.taskOf), costs, settings.mode == Mode.Observe)
  }

  /** Sends state to the executors that need it, while the map tasks run. */
  private def sendAhead(tiered: TieredRegion): Unit = {
    leases.bring(runId, id, tiered.ahead)
    if (settings.replicas > 1) leases.copy(runId, id, tiered.copies(settings.moveMaxBytesPerBatch))
  }

  /** Accumulator of what the tasks measure. When the batch has ended, it is posted and the planner learns from it. */
  private def loadOf(barrier: RegionBarrier, planning: Option[RegionPlanning], usesCosts: Boolean): RegionLoad = {
    val load = new RegionLoad(
      layout,
      planned.spec.operators.map(_.operatorId),
      if (settings.mode == Mode.Observe) batch.spec.shardCount else tasks,
      settings.reportKeys,
      known.exists(_.timesTellLittle),
      load => {
        barrier.decision.foreach { decision =>
          post(decision, load)
          planning.foreach(_.learn(decision, load, usesCosts))
        }
        whenComplete()
      }
    )
    session.sparkContext.register(load)
    load
  }

  private def reasonsOf(planning: Option[RegionPlanning]): PlanReasons = {
    val reasons = planning.fold(PlanReasons())(_.reasons)
    reasons.copy(tasks = keptTasks.orElse(reasons.tasks))
  }

  /** Executor that each task is planned for; empty if Spark chooses the executors. */
  private def executorOf(tiered: Option[TieredRegion]): IndexedSeq[String] =
    tiered.fold(IndexedSeq.empty[String])(_.executorOf)

  private def executorsNow: ExecutorSet = LiveExecutors.of(session.sparkContext)

  /** Memory of each shard over all stores of the region; 0 if unknown. */
  private def stateBytes: Array[Long] =
    StateLoad.sum(leases.stateLoads(runId, id).values).of(layout.shards).bytes

  /** Executor of each shard after the batch before; empty for an unknown run. */
  private def owners: Array[String] = Option(leases.owners(runId, id)).getOrElse(Array.empty)

  /** Posts the measurements of the region's tasks to listeners. */
  private def post(decision: Decision, load: RegionLoad): Unit = {
    val binding = decision.binding
    session.sparkContext.listenerBus.post(ShardsMeasured(
      runId,
      id,
      batch.spec.batchId,
      binding.tasks,
      binding.taskOf,
      decision.rows,
      load.busyOfShardsNs,
      load.tasks.map(_.workNs).toArray,
      load.tasks.map(_.waitNs).toArray,
      load.ofOperators(decision.rows),
      leases.stateLoads(runId, id).map { case (store, state) => store -> state.of(load.layout.shards) }
    ))
  }
}
