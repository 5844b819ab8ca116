package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import io.penstock.routing.MoveCost
import io.penstock.telemetry.{CostTrust, MovedState, RowCosts}

/** What a run knows about its regions at the end of a batch. Not thread safe. */
final private[routing] class KnownRegions {
  private val known = mutable.Map.empty[Long, KnownRegion]

  def get(region: Long): Option[KnownRegion] = known.get(region)

  /**
   * Learns from a region of a batch that has ended.
   *
   * @param moved
   *   State that the batch moved to where its tasks ran; None if unknown
   */
  def learn(r: RegionRouting, moved: Option[MovedState]): Unit =
    r.barrier.decision.foreach { d =>
      val id = r.spec.region
      val layout = r.load.layout
      val before = known.get(id).map(_.in(layout))
      val costs = before.fold(new RowCosts(layout.shards))(_.costs)
      val trust = before.fold(new CostTrust(layout.shards))(_.trust)
      if (r.reason.isEmpty && !r.load.timesTellLittle) {
        val samples = r.load.samples
        trust.score(costs.relative, d.rows, samples, d.proposed.tasks)
        costs.learn(samples)
        // Kept for the next batch.
        costs.relative: Unit
      }
      // A batch without rows keeps the hashes that were sampled before.
      val hashes = Some(r.load.sampledHashes).filter(_.nonEmpty).orElse(known.get(id).map(_.sampledHashes))
      val batches = known.get(id).fold(0)(_.batches) + 1
      val deviation = r.load.rowDeviation.orElse(known.get(id).map(_.rowDeviation)).getOrElse(0.0)
      val msPerLoad = r.load.workMs / math.max(1L, d.load.sum)
      val move = moveAfter(known.get(id).fold(MoveCost.Usual)(_.move), moved)
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

  private def moveAfter(before: MoveCost, moved: Option[MovedState]): MoveCost =
    moved.flatMap(m => m.travelled.map(m -> _))
      .fold(before) { case (m, shards) => before.after(m.bytes - m.aheadBytes, m.loadNs / 1e6, shards) }
}
