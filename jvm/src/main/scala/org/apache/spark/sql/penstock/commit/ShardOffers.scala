package org.apache.spark.sql.penstock.commit

import org.apache.spark.sql.penstock.lease.{Holder, RegionSpec}

import io.penstock.routing.Division
import io.penstock.state.format.ShardOffer

/** Offers of shards that executors hold in memory, made from what a run knows at the time of the call. */
final private class ShardOffers(batch: OpenBatch, locations: ShardLocations) {
  import ShardOffers._

  /**
   * All shards that a leaving executor holds in memory, divided by size among the other executors that can be asked for
   * shards. Empty if there are none.
   *
   * @param executor
   *   task location of the leaving executor
   * @param getsTasks
   *   whether an executor gets tasks. One that does not is offered nothing
   */
  def handOver(executor: String)(getsTasks: String => Boolean): Seq[HandOver] = {
    val receivers = locations.reachable.filter(e => e != executor && getsTasks(e))
    if (receivers.isEmpty || locations.addressesOf(executor).isEmpty) Nil
    else
      for {
        region <- batch.spec.regions
        owners = locations.ownersOf(region.region)
        shards = owners.indices.filter(owners(_) == executor)
        bytes = locations.loads.bytesOf(region.region, owners.length)
        division = Division.of(shards.map(bytes(_)).toArray, receivers.size)
        (part, shardsOfPart) <- shards.zip(division).groupMap(_._2)(_._1).toSeq
        to <- holder(receivers(part)).toSeq
        offer <- offersFrom(executor, region, shardsOfPart)
      } yield HandOver(batch.spec.runId, region.region, to, ShardOffer.encode(offer))
  }

  /**
   * Offers that bring shards to executors while the open batch begins: from each executor that holds some of them to
   * each one that is to receive them.
   *
   * @param to
   *   shards, most important first, each with the executor that is to receive it
   * @return
   *   offers in that order, each with the executor that is to take its shards
   */
  def ahead(region: Long, to: Seq[(Int, String)]): Seq[(String, ShardOffer)] = {
    val owners = locations.ownersOf(region)
    val transfers = to
      .filter { case (s, executor) =>
        s < owners.length && owners(s) != executor && owners(s) != null && locations.addressesOf(owners(s)).nonEmpty
      }
      .groupMap { case (s, executor) => (owners(s), executor) }(_._1)
    for {
      ((from, executor), shards) <- transfers.toSeq.sortBy(t => to.indexWhere(_._1 == t._2.head))
      r <- batch.spec.regions.find(_.region == region).toSeq
      offer <- offersFrom(from, r, shards)
    } yield executor -> offer
  }

  private def holder(executor: String): Option[Holder] = locations.addressesOf(executor).map(Holder(executor, _))

  /** Offers of some shards of an executor; without those that have no content. */
  private def offersFrom(executor: String, region: RegionSpec, shards: Seq[Int]): Seq[ShardOffer] =
    for {
      from <- holder(executor).toSeq
      offered <- shards.grouped(math.max(1, MaxNamed / region.stores.size)).toSeq
      stores = region.stores.flatMap(key => batch.held(key, offered))
      if stores.nonEmpty
    } yield ShardOffer(
      batch.spec.stateRoot,
      batch.layout(region.region).baseShards,
      from.executor,
      from.addresses,
      stores
    )
}

private object ShardOffers {

  /**
   * Maximum number of times that one offer names a shard, which it does for each store of the region. A question to a
   * sidecar has at most 512 KiB, and a shard takes up to 20 bytes of it.
   */
  private val MaxNamed = 20000
}
