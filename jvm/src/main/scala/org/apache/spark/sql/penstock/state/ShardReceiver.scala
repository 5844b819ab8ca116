package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.errors.PenstockException
import io.penstock.sidecars.transfer.PeerQuestions
import io.penstock.state.format.{OfferedStore, ShardOffer, WantedShard}
import io.penstock.state.memory.{MemoryBound, SharedBytes}

/**
 * Takes shards that another executor holds in memory, either because that executor ends and hands them over, or because
 * they are to be here in the next batch. Tasks that open such a shard meanwhile wait for it.
 *
 * @param stores
 *   the shards of this executor
 * @param bound
 *   the bound on their memory
 * @param peers
 *   the way to other executors
 */
final class ShardReceiver(stores: ShardStores, bound: MemoryBound, peers: PeerQuestions) {

  /** Takes shards. Returns those that are here now in all offered stores, each with the transport that brought it. */
  def take(offer: ShardOffer): Seq[(Int, String)] = {
    val from = Holder(offer.executor, offer.addresses)
    val transports = mutable.Map[Int, String]()
    val slots = for (offered <- offer.stores; slot <- slotsOf(offer, offered)) yield slot
    slots.foreach(_.expect())
    try {
      val missing = offer.stores.flatMap(offered => takeWhileRoom(offer, offered, from)(transports(_) = _)).toSet
      offer.shards.filterNot(missing).map(shard => shard -> transports.getOrElse(shard, ShardReceiver.Here))
    } finally slots.foreach(_.expected())
  }

  private def slotsOf(offer: ShardOffer, offered: OfferedStore): Seq[ShardSlot] = {
    val store = stores.get(offer.stateRoot, offered.store, offer.baseShards)
    offered.shards.map(_._1).filter(store.has).map(store.slot)
  }

  /** Takes shards of a store until there is no room for more. Returns those that are not here, for the checkpoint. */
  private def takeWhileRoom(
      offer: ShardOffer,
      offered: OfferedStore,
      from: Holder
  )(received: (Int, String) => Unit): Seq[Int] = {
    val taken = mutable.Set[Int]()
    try take(offer, offered, from) { (shard, by) =>
        received(shard, by)
        taken += shard
      }
    catch {
      case e: PenstockException if e.errorClass == "PENSTOCK_STATE_TOO_LARGE" =>
        offered.shards.map(_._1).filterNot(taken)
    }
  }

  /** Takes shards of a store. Returns those that are not here afterwards. */
  private def take(offer: ShardOffer, offered: OfferedStore, from: Holder)(
      received: (Int, String) => Unit
  ): Seq[Int] = {
    val store = stores.get(offer.stateRoot, offered.store, offer.baseShards)
    val lineages = offered.shards.filter { case (shard, _) => store.has(shard) }.toMap
    val (here, elsewhere) = lineages.toSeq.partition { case (shard, lineage) => store.slot(shard).has(lineage) }
    here.foreach { case (shard, lineage) =>
      store.slot(shard).adopt(lineage, offered.version, throw new IllegalStateException("not in memory"))
    }
    val refused = mutable.Set[Int]()
    val wanted = elsewhere.map { case (shard, lineage) => WantedShard(shard, lineage, store.slot(shard).lineage) }
    val left =
      new ShardTravel(offer.stateRoot, offered.store, peers).bring(wanted, _ => Seq(from)) { (shard, answer, by) =>
        val slot = store.slot(shard)
        val lineage = lineages(shard)
        val adopted = answer match {
          case ShardTravel.Content(loaded) => slot.adopt(lineage, offered.version, loaded)
          case ShardTravel.Changes(base, bytes) =>
            slot.prepare(lineage, base, new SharedBytes(bytes, store.memory), 0, bytes.length)
            slot.has(lineage) && slot.adopt(lineage, offered.version, throw new IllegalStateException("not in memory"))
        }
        try bound.verify()
        catch {
          case e: Throwable =>
            slot.forget()
            throw e
        } finally slot.expected()
        if (adopted) received(shard, by) else refused += shard
      }
    left ++ refused ++ offered.shards.map(_._1).filterNot(store.has)
  }
}

object ShardReceiver {

  /** Takes the place of a transport for a shard that was here already. */
  val Here = "here"
}
