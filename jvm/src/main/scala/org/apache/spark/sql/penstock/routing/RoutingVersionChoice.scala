package org.apache.spark.sql.penstock.routing

import java.util.UUID

import scala.collection.immutable.SortedMap

import io.penstock.conf.{Mode, QuerySettings}
import io.penstock.control.Planner
import io.penstock.routing.{CoresPolicy, PinOrders, RoutingVersion}
import io.penstock.sharding.Layout

/**
 * Chooses the routing version of one batch.
 *
 * @param shards
 *   S, the number of base shards
 * @param cores
 *   Number of tasks that the application can run at once
 * @param isFirst
 *   Whether this is the first batch of the run
 * @param newestAtStart
 *   Newest batch in the query's offset log when the run started; -1 if the log was empty, None if unknown
 * @param sampledHashes
 *   Hashes of the keys that the tasks of a region sampled most
 * @param orders
 *   Pins that the application requested in a region
 */
final private[routing] class RoutingVersionChoice(
    routingVersions: RoutingVersionLog,
    runId: UUID,
    batchId: Long,
    shards: Int,
    settings: QuerySettings,
    cores: Int,
    isFirst: Boolean,
    newestAtStart: Option[Long],
    sampledHashes: Long => Seq[Int],
    orders: Long => PinOrders
) {

  /**
   * The routing version of the batch. Also, for each region that keeps its number of tasks because the batch is
   * repeated, the reason.
   */
  def of(regions: Seq[PlannedRegion]): (RoutingVersion, Map[Long, String]) = {
    val inForce = routingVersions.inForce(batchId)
    val policy = settings.tasks.policy(Planner.current.plan(runId, _).toOption.map(_.tasks))
    val repeated = triedBefore
    val counts = regions.map { r =>
      val id = r.spec.region
      id -> (r.route match {
        case _: Route.AtBarrier | _: Route.InTurn =>
          val tasksInForce = inForce.flatMap(_.tasks.get(id))
          // A number of tasks that follows the cores is not kept if the cores change.
          val chosen = tasksInForce.filterNot(_ => inForce.exists(_.perCore(id)))
          val wanted = policy.tasks(batchId, id, cores, shards, chosen)
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
      atBarrier.filter(id => tasks(id) == CoresPolicy.tasks(batchId, id, cores, shards, None)).toSet
    }(_.perCore)
    val pinSlots =
      regions.map(r => r.spec.region -> pinSlotsOf(r, inForce, repeated.nonEmpty))
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
  private def triedBefore: Option[String] =
    if (routingVersions.settled(batchId) || (isFirst && newestAtStart.exists(batchId <= _)))
      Some("an earlier run has tried this batch with this number of tasks")
    else
      Option.when(isFirst && newestAtStart.isEmpty)("it is unknown whether an earlier run has tried this batch")

  /** Pin slots of a region in a batch. */
  private def pinSlotsOf(
      region: PlannedRegion,
      inForce: Option[RoutingVersion],
      isRepeated: Boolean
  ): Vector[Option[Int]] = region.route match {
    case Route.AtBarrier(_, Nil) if settings.mode == Mode.On && settings.pinnedMax > 0 =>
      val id = region.spec.region
      val layout = inForce.fold(Layout(shards))(_.layout(id))
      val sampled = sampledHashes(id)
      if (isRepeated) layout.pinSlots
      else {
        def planned(region: Long) = Planner.current.plan(runId, region).toOption.flatMap(_.pinned)
        val chosen = settings.policy.pins(settings.pinnedMax, planned).pins(batchId, id, layout.pinned, sampled)
        layout.pinning(orders(id).over(chosen, layout.pinned, settings.pinnedMax)).pinSlots
      }
    case _ => Vector.empty
  }
}
