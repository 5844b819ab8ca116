package org.apache.spark.sql.penstock.routing

import java.util.UUID
import java.util.concurrent.{Executor, RejectedExecutionException}

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.penstock.executors.{LatencyTargets, LiveExecutors}
import org.apache.spark.sql.penstock.lease.{BatchLeases, BatchSpec, RegionLease, RegionSpec}

import io.penstock.conf.{Mode, QuerySettings}

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
 * @param learners
 *   Runs what is learnt from a batch
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
    learners: Executor,
    openVersionLog: => RoutingVersionLog
) extends Logging {
  private lazy val routingVersions = openVersionLog

  /** Settings of the newest planned batch. */
  private var settings = settingsNow()
  private var current: Option[BatchRouting] = None
  private val known = new KnownRegions

  /** Regions of the newest batch from which nothing was learnt yet. */
  private val unlearnt = mutable.Set.empty[RegionRouting]
  private val pinRequests = new PinRequests

  /** Regions that were logged. */
  private val announced = mutable.Set.empty[Long]

  /** Returns the routing of a batch. */
  def batch(batchId: Long, shards: Int, regions: Seq[PlannedRegion]): BatchRouting = synchronized {
    current.filter(b => b.spec.batchId == batchId && b.spec.regions == regions.map(_.spec)).getOrElse {
      // Learns from regions of which a task has not reported, or whose learner was not fast enough.
      unlearnt.foreach(learn)
      unlearnt.clear()
      settings = settingsNow()
      LatencyTargets.current.set(runId, settings.latencyTargetMs, settings.mode == Mode.On)
      pinRequests.beginBatch(regions)
      val spec = BatchSpec(runId, stateRoot, batchId, shards, regions.map(_.spec), countedBySpark = foreachBatch)
      lazy val (routingVersion, keptReasons) = versionChoice(batchId, shards).of(regions)
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
        batch => regions.map(r => routed(batch, r, opened(r.spec.region), keptReasons.get(r.spec.region)))
      )
      current = Some(routing)
      unlearnt ++= routing.regions
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
    def unrouted = current.toSeq.flatMap(_.regions).flatMap(r => r.inTurn.orElse(r.reason)).distinct
    pinRequests.request(key, pin, failure, settings, session.sessionState.conf, unrouted)
  }

  private def routed(
      batch: BatchRouting,
      region: PlannedRegion,
      lease: RegionLease,
      keptTasks: Option[String]
  ): RegionRouting = {
    val id = region.spec.region
    val names = pinRequests.namesOf(id)
    val shown = settings.reportKeys
    new RegionRoutingBuilder(
      session,
      runId,
      settings,
      leases,
      batch,
      region,
      lease,
      known.get(id),
      keptTasks,
      () => complete(batch.spec.batchId, id),
      hash => synchronized(names.text(hash, shown) -> names.wasSeen(hash))
    ).build()
  }

  private def versionChoice(batchId: Long, shards: Int): RoutingVersionChoice = new RoutingVersionChoice(
    routingVersions,
    runId,
    batchId,
    shards,
    settings,
    LiveExecutors.tasksAtOnce(session.sparkContext),
    isFirst = current.isEmpty,
    newestAtStart,
    region => known.get(region).fold(Seq.empty[Int])(_.sampledHashes),
    pinRequests.ordersOf
  )

  /** Learns from a region whose tasks have all reported, while Spark records the batch. */
  private def complete(batchId: Long, region: Long): Unit =
    try
      learners.execute { () =>
        synchronized {
          unlearnt.find(r => r.batch.spec.batchId == batchId && r.spec.region == region).foreach { r =>
            learn(r)
            // Not earlier: what fails here fails again, and visibly, in the next batch.
            unlearnt -= r
          }
        }
      }
    catch { case _: RejectedExecutionException => } // The application has ended.

  /** Keeps the decision and the row costs of a region; the rest of the batch is dropped. */
  private def learn(r: RegionRouting): Unit = if (r.barrier.decision.nonEmpty) {
    learnNames(r)
    known.learn(r, leases.moved(runId, r.spec.region))
  }

  /** Records the texts of heavy keys, and warns about keys that the application has pinned and that do not exist. */
  private def learnNames(r: RegionRouting): Unit = {
    val names = pinRequests.namesOf(r.spec.region)
    if (r.load.reportKeys) names.heavy(r.load.tasks.flatMap(_.heavyKeys).map(k => GivenKey(k.hash, k.text)))
    names.ran(r.lease.layout.pinned, r.isPresent).foreach { key =>
      val name = if (r.load.reportKeys) s"the key $key" else "a key"
      logWarning(
        s"Penstock: run $runId, region ${r.spec.region}: $name that the application has pinned had no row in batch " +
          s"${r.batch.spec.batchId} and has no state. Check that its values are spelled as in the query's rows."
      )
    }
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
