package org.apache.spark.sql.penstock.routing

import java.util.UUID

import scala.collection.immutable.SortedMap
import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.penstock.executors.{LatencyTargets, LiveExecutors}
import org.apache.spark.sql.penstock.lease.{BatchLeases, BatchSpec, RegionLease, RegionSpec}
import org.apache.spark.sql.penstock.telemetry.RegionLoad
import org.apache.spark.sql.types.DataType

import io.penstock.conf.{Mode, QuerySettings}
import io.penstock.control.Planner
import io.penstock.errors.PenstockException
import io.penstock.routing._
import io.penstock.sharding.Layout
import io.penstock.telemetry.{CostTrust, MovedState, RowCosts, ShardsMeasured, StateLoad}

/** A region as found in the plan. */
final private[routing] case class PlannedRegion(spec: RegionSpec, names: Seq[String], route: Route)

/**
 * Driver side of one run of a query. It determines the routing version and the regions of each batch only once, even if
 * the batch is planned several times, and keeps what is known about the regions from batch to batch. Holds one batch at
 * a time.
 *
 * @param session
 *   The query's own session
 * @param runId
 *   Id of the query's run
 * @param stateRoot
 *   State directory of the query
 * @param settingsNow
 *   Returns the query's settings, with those that were set since the run started
 * @param newestAtStart
 *   Newest batch in the query's offset log when the run started; -1 if the log was empty, None if unknown
 * @param foreachBatch
 *   Whether the query's sink is foreachBatch
 * @param leases
 *   Driver side of the state layer
 * @param openVersionLog
 *   Opens the log of the query's routing versions
 */
final private[routing] class RunRouting(
    session: SparkSession,
    runId: UUID,
    stateRoot: String,
    settingsNow: () => QuerySettings,
    newestAtStart: Option[Long],
    foreachBatch: Boolean,
    leases: BatchLeases,
    openVersionLog: => RoutingVersionLog
) extends Logging {
  private lazy val routingVersions = openVersionLog

  /** Settings of the newest planned batch. */
  private var settings = settingsNow()
  private var current: Option[BatchRouting] = None
  private val known = mutable.Map.empty[Long, KnownRegion]
  private val orders = mutable.Map.empty[Long, PinOrders]
  private val pinnedKeys = mutable.Map.empty[Long, PinnedKeys]
  private var keyTypes = Map.empty[Long, Seq[DataType]]

  /** Regions that were logged. */
  private val announced = mutable.Set.empty[Long]

  /** Returns the routing of a batch. */
  def batch(batchId: Long, shards: Int, regions: Seq[PlannedRegion]): BatchRouting = synchronized {
    current.filter(b => b.spec.batchId == batchId && b.spec.regions == regions.map(_.spec)).getOrElse {
      remember()
      settings = settingsNow()
      LatencyTargets.current.set(runId, settings.latencyTargetMs, settings.mode == Mode.On)
      // A pinned key leaves its shard, which is impossible if inputs are read by shard.
      keyTypes = regions.collect { case PlannedRegion(r, _, Route.AtBarrier(inputs, Nil)) =>
        r.region -> inputs.head.outputPartitioning.asInstanceOf[HashPartitioning].expressions.map(_.dataType)
      }.toMap
      val spec = BatchSpec(runId, stateRoot, batchId, shards, regions.map(_.spec), countedBySpark = foreachBatch)
      lazy val (routingVersion, keptReasons) = routingVersionOf(batchId, shards, regions)
      // Open the leases first: this refuses a checkpoint that cannot be continued, to which nothing may be written.
      val opened =
        leases.open(session, spec)(regions.map(r => r.spec.region -> routingVersion.layout(r.spec.region)).toMap)
      val routing = new BatchRouting(
        spec,
        settings.mode,
        settings.theta,
        settings.policy.learnsCosts,
        routingVersion,
        () => leases.report(runId),
        routed(_, regions, opened, keptReasons)
      )
      current = Some(routing)
      routing.regions.foreach(announce)
      routing
    }
  }

  /**
   * Pins a key, or returns it to its base shard, in all regions that have keys of its types.
   *
   * @param key
   *   Values of the key
   * @param pin
   *   Whether the key is pinned; otherwise it is unpinned
   * @param failure
   *   First part of the error message
   */
  def order(key: Seq[Expression], pin: Boolean, failure: String): Unit = synchronized {
    def refuse(errorClass: String, why: String) = throw new PenstockException(errorClass, s"$failure: $why")
    if (settings.mode != Mode.On) {
      refuse("PENSTOCK_CANNOT_PIN", s"no region of the query is routed in mode ${settings.mode}. Set penstock.mode=on")
    }
    if (keyTypes.isEmpty) {
      val why = current.toSeq.flatMap(_.regions).flatMap(r => r.inTurn.orElse(r.reason)).distinct.mkString("; ")
      refuse("PENSTOCK_CANNOT_PIN", s"no region of the query reads only hash exchanges: $why")
    }
    val conf = session.sessionState.conf
    val keys = keyTypes.flatMap { case (region, types) => KeyHash.of(key, types, conf).map(region -> _) }
    if (keys.isEmpty) {
      val known = keyTypes.toSeq.sortBy(_._1).map { case (r, types) =>
        s"region $r: ${types.map(_.sql).mkString(", ")}"
      }
      val types = if (key.isEmpty) "nothing" else key.map(_.dataType.sql).mkString(", ")
      refuse(
        "PENSTOCK_NO_SUCH_KEY",
        s"the query has keys of other types (${known.mkString("; ")}), and $types was given"
      )
    }
    val changed = keys.map { case (region, key) =>
      val before = orders.getOrElse(region, PinOrders())
      region -> (if (pin) before.pin(key.hash) else before.unpin(key.hash))
    }
    if (pin && changed.exists(_._2.pinned.size > settings.pinnedMax)) {
      refuse(
        "PENSTOCK_CANNOT_PIN",
        s"penstock.pinned.max=${settings.pinnedMax} does not allow more pinned keys. Unpin another key, or increase " +
          s"penstock.pinned.max, up to ${Layout.MaxPinSlots}"
      )
    }
    orders ++= changed
    if (pin) keys.foreach { case (region, key) => namesOf(region).named(key) }
  }

  private def namesOf(region: Long): PinnedKeys = pinnedKeys.getOrElseUpdate(region, new PinnedKeys)

  private def routed(
      batch: BatchRouting,
      regions: Seq[PlannedRegion],
      opened: Map[Long, RegionLease],
      keptReasons: Map[Long, String]
  ): Seq[RegionRouting] = regions.map { r =>
    val id = r.spec.region
    val (reason, inTurn) = r.route match {
      case atBarrier: Route.AtBarrier => (None, atBarrier.inTurnReason)
      case Route.InTurn(why) => (Some(why), Some(why))
      case Route.ByShard(why) => (Some(why), None)
      case Route.Single => (Some("its operator takes one partition only"), None)
    }
    val tasks = batch.routingVersion.tasks(id)
    val layout = opened(id).layout
    val before = known.get(id).map(_.in(layout))
    val deadBand = known.get(id).fold(DeadBand.Empty)(_.deadBand)
    val policyBatch = PolicyBatch(batch.spec.batchId, id, settings.theta, deadBand, acts = settings.mode == Mode.On)
    val homes =
      if (reason.nonEmpty) None
      else {
        def planned = Planner.current.plan(runId, id).toOption
          .filter(_.isFresh(batch.spec.batchId)).flatMap(_.homes)
        settings.policy.homes(policyBatch, planned)
      }
    val move =
      if (opened(id).holders.all.isEmpty) MoveCost.FromCheckpoint else known.get(id).fold(MoveCost.Usual)(_.move)
    val tiered = homes.flatMap { policy =>
      TieredRegion.of(
        LiveExecutors.of(session.sparkContext),
        tasks,
        layout,
        known.get(id),
        ownersOf(id),
        if (settings.replicas > 1) leases.replicas(runId, id) else Array.empty,
        policy,
        stateBytes(id, layout),
        settings.moveMaxBytesPerBatch,
        move
      )
    }
    val executorOf = tiered.fold(IndexedSeq.empty[String])(_.executorOf)
    val choices = PlanChoices.of(settings).filter(_ => reason.isEmpty)
    val planning = choices.map(c => if (inTurn.isEmpty) c else c.copy(pins = None)).map { choices =>
      val executors = RegionExecutors(
        tiered.fold(ExecutorSet.None)(_.executors),
        tiered.fold(0)(_.waiting),
        move,
        () => LiveExecutors.of(session.sparkContext),
        () => ownersOf(id),
        executorOf
      )
      val regionBatch =
        RegionBatch(runId, id, batch.spec.batchId, tasks, batchesBefore = before.fold(0)(_.batches))
      new RegionPlanning(choices, regionBatch, cores, stateBytes(id, layout), executors)
    }
    val costs = planning.flatMap(_.rowTimes).map(_.relative(layout)).orElse(before.flatMap(_.trustedCosts))
    val barrier = new RegionBarrier(
      layout.shards,
      tasks,
      tiered.fold(settings.policy.binder(policyBatch, planning.flatMap(_.taskOf)))(
        _.binder(settings.theta, deadBand)
      ),
      before.map(_.taskOf),
      costs,
      settings.mode == Mode.Observe
    )
    // State is sent while the map tasks run.
    if (settings.mode == Mode.On) tiered.foreach { t =>
      leases.bring(runId, id, t.ahead)
      if (settings.replicas > 1) leases.copy(runId, id, t.copies(settings.moveMaxBytesPerBatch))
    }
    val load = new RegionLoad(
      layout,
      r.spec.operators.map(_.operatorId),
      if (settings.mode == Mode.Observe) batch.spec.shardCount else tasks,
      settings.reportKeys,
      known.get(id).exists(_.timesTellLittle),
      load =>
        barrier.decision.foreach { decision =>
          post(batch, id, decision, load)
          planning.foreach(_.learn(decision, load, costs.nonEmpty))
        }
    )
    session.sparkContext.register(load)
    val planned = planning.fold(PlanReasons())(_.reasons)
    val reasons = planned.copy(tasks = keptReasons.get(id).orElse(planned.tasks))
    val limited = known.get(id).fold(Limited.Never)(_.limited)
    val names = namesOf(id)
    val shown = settings.reportKeys
    new RegionRouting(
      batch,
      r.spec,
      r.names,
      reason,
      inTurn,
      opened(id),
      leases,
      barrier,
      load,
      reasons,
      executorOf,
      limited,
      hash => synchronized(names.text(hash, shown) -> names.wasSeen(hash))
    )
  }

  /** Memory of each shard over all stores of a region; 0 if unknown. */
  private def stateBytes(region: Long, layout: Layout): Array[Long] =
    StateLoad.sum(leases.stateLoads(runId, region).values).of(layout.shards).bytes

  /** Executor of each shard after the batch before; empty for an unknown run. */
  private def ownersOf(region: Long): Array[String] = Option(leases.owners(runId, region)).getOrElse(Array.empty)

  /** Posts the measurements of a region's tasks to listeners. */
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
      load.tasks.map(_.workNs).toArray,
      load.tasks.map(_.waitNs).toArray,
      load.ofOperators(decision.rows),
      leases.stateLoads(runId, region).map { case (store, state) => store -> state.of(load.layout.shards) }
    ))
  }

  /** Keeps the decision and the row costs of the newest batch; the rest of the batch is dropped. */
  private def remember(): Unit = current.foreach(_.regions.foreach { r =>
    r.barrier.decision.foreach { d =>
      val id = r.spec.region
      learnNames(r)
      val layout = r.load.layout
      val before = known.get(id).map(_.in(layout))
      val costs = before.fold(new RowCosts(layout.shards))(_.costs)
      val trust = before.fold(new CostTrust(layout.shards))(_.trust)
      if (r.reason.isEmpty && !r.load.timesTellLittle) {
        val samples = r.load.samples
        trust.score(costs.relative, d.rows, samples, d.proposed.tasks)
        costs.learn(samples)
      }
      // A batch without rows keeps the hashes that were sampled before.
      val hashes = Some(r.load.sampledHashes).filter(_.nonEmpty).orElse(known.get(id).map(_.sampledHashes))
      val batches = known.get(id).fold(0)(_.batches) + 1
      val deviation = r.load.rowDeviation.orElse(known.get(id).map(_.rowDeviation)).getOrElse(0.0)
      val msPerLoad = r.load.workMs / math.max(1L, d.load.sum)
      val move = moveAfter(known.get(id).fold(MoveCost.Usual)(_.move), leases.moved(runId, id))
      known(id) = KnownRegion(
        layout,
        d.proposed.taskOf,
        r.executorOf,
        d.load,
        msPerLoad,
        deviation,
        costs,
        trust,
        move,
        hashes.getOrElse(Nil),
        r.limited,
        r.load.timesTellLittle,
        batches
      )
    }
  })

  /** Records the texts of heavy keys, and warns about keys that the application has pinned and that do not exist. */
  private def learnNames(r: RegionRouting): Unit = {
    val names = namesOf(r.spec.region)
    if (r.load.reportKeys) names.heavy(r.load.tasks.flatMap(_.heavyKeys).map(k => GivenKey(k.hash, k.text)))
    names.ran(r.lease.layout.pinned, r.isPresent).foreach { key =>
      val name = if (r.load.reportKeys) s"the key $key" else "a key"
      logWarning(
        s"Penstock: run $runId, region ${r.spec.region}: $name that the application has pinned had no row in batch " +
          s"${r.batch.spec.batchId} and has no state. Check that its values are spelled as in the query's rows."
      )
    }
  }

  private def moveAfter(before: MoveCost, moved: Option[MovedState]): MoveCost =
    moved.flatMap(m => m.travelled.map(m -> _))
      .fold(before) { case (m, shards) => before.after(m.bytes - m.aheadBytes, m.loadNs / 1e6, shards) }

  /**
   * The routing version of a batch. Also, for each region that keeps its number of tasks because the batch is repeated,
   * the reason.
   */
  private def routingVersionOf(
      batchId: Long,
      shards: Int,
      regions: Seq[PlannedRegion]
  ): (RoutingVersion, Map[Long, String]) = {
    val inForce = routingVersions.inForce(batchId)
    val policy = settings.tasks.policy(Planner.current.plan(runId, _).toOption.map(_.tasks))
    val repeated = triedBefore(batchId)
    val coresNow = cores
    val counts = regions.map { r =>
      val id = r.spec.region
      id -> (r.route match {
        case _: Route.AtBarrier | _: Route.InTurn =>
          val tasksInForce = inForce.flatMap(_.tasks.get(id))
          // A number of tasks that follows the cores is not kept if the cores change.
          val chosen = tasksInForce.filterNot(_ => inForce.exists(_.perCore(id)))
          val wanted = policy.tasks(batchId, id, coresNow, shards, chosen)
          (tasksInForce.filter(_ => repeated.nonEmpty).getOrElse(wanted), wanted)
        case Route.Single => (1, 1)
        case Route.ByShard(_) => (shards, shards)
      })
    }
    val tasks = SortedMap.from(counts.map { case (id, (count, _)) => id -> count })
    val perCore = inForce.filter(_ => repeated.nonEmpty).fold {
      val atBarrier = regions.collect {
        case PlannedRegion(r, _, _: Route.AtBarrier | _: Route.InTurn) if settings.tasks.followsCores => r.region
      }
      atBarrier.filter(id => tasks(id) == CoresPolicy.tasks(batchId, id, coresNow, shards, None)).toSet
    }(_.perCore)
    val pinSlots =
      regions.map(r => r.spec.region -> pinSlotsOf(batchId, shards, r, inForce, repeated.nonEmpty))
        .filter(_._2.nonEmpty)
    val routingVersion = inForce
      .filter(_.isLike(shards, tasks, pinSlots.toMap, perCore))
      .getOrElse(routingVersions.append(batchId, shards, tasks, pinSlots.toMap, perCore))
    routingVersions.clean(batchId)
    val keptReasons =
      for ((id, (n, wanted)) <- counts; why <- repeated if n != wanted) yield id -> s"$why; the next batch has $wanted"
    (routingVersion, keptReasons.toMap)
  }

  /**
   * Why a batch must use the routing version in force; None if it may get a new one. A batch must use it if it is not
   * later than the first batch of the newest routing version, or if it is the first batch of this run and an earlier
   * run has tried it. Spark writes each batch to its offset log before it plans the batch, so an earlier run may have
   * tried every batch that was in the log when this run started.
   */
  private def triedBefore(batchId: Long): Option[String] =
    if (routingVersions.settled(batchId) || (current.isEmpty && newestAtStart.exists(batchId <= _)))
      Some("an earlier run has tried this batch with this number of tasks")
    else
      Option.when(current.isEmpty && newestAtStart.isEmpty)("it is unknown whether an earlier run has tried this batch")

  /** Pin slots of a region in a batch. */
  private def pinSlotsOf(
      batchId: Long,
      shards: Int,
      region: PlannedRegion,
      inForce: Option[RoutingVersion],
      isRepeated: Boolean
  ): Vector[Option[Int]] = region.route match {
    case Route.AtBarrier(_, Nil) if settings.mode == Mode.On && settings.pinnedMax > 0 =>
      val id = region.spec.region
      val layout = inForce.fold(Layout(shards))(_.layout(id))
      val sampled = known.get(id).fold(Seq.empty[Int])(_.sampledHashes)
      if (isRepeated) layout.pinSlots
      else {
        def planned(region: Long) = Planner.current.plan(runId, region).toOption.flatMap(_.pinned)
        val chosen = settings.policy.pins(settings.pinnedMax, planned).pins(batchId, id, layout.pinned, sampled)
        layout.pinning(orders.getOrElse(id, PinOrders()).over(chosen, layout.pinned, settings.pinnedMax)).pinSlots
      }
    case _ => Vector.empty
  }

  /**
   * Number of tasks that the application can run at once. It is 2, as Spark assumes, while no executor has registered.
   */
  private def cores: Int = {
    val context = session.sparkContext
    val now = context.maxNumConcurrentTasks(ResourceProfile.getOrCreateDefaultProfile(context.getConf))
    if (now > 0) now else 2
  }

  /** Logs, once for each region, how it is routed. */
  private def announce(region: RegionRouting): Unit = if (announced.add(region.spec.region)) {
    val operators = region.names.mkString(" + ")
    val description = region.reason match {
      case None =>
        s"routed in ${region.batch.spec.shardCount} shards, mode ${settings.mode}, policy ${settings.policy}" +
          region.inTurn.fold("")("; tasks read their shards in turn: " + _)
      case Some(why) if region.spec.single => s"not routed, it runs in one task: $why"
      case Some(why) if region.inTurn.nonEmpty => s"not routed, its tasks run their shards in turn: $why"
      case Some(why) => s"not routed, it has one task per shard: $why"
    }
    logInfo(s"Penstock: run $runId, region ${region.spec.region} ($operators) is $description")
  }
}
