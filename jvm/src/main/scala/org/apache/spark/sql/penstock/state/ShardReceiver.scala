package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.errors.PenstockException
import io.penstock.state.format.{OfferedStore, ShardOffer, WantedShard}
import io.penstock.state.memory.SharedBytes

/**
 * Takes shards that another executor has in memory: it ends and hands them over, or they are to be here in the next batch.
 * Tasks that open them meanwhile wait for them.
 */
object ShardReceiver {

  /** In place of a transport: it was here. */
  val Here = "here"

  /** Gives those of which all that was offered is here now, each with the transport that brought it. */
  def take(offer: ShardOffer): Seq[(Int, String)] = {
    val from = Holder(offer.executor, offer.addresses)
    val ways = mutable.Map[Int, String]()
    val slots = for (of <- offer.stores; slot <- slotsOf(offer, of)) yield slot
    slots.foreach(_.expect())
    try {
      val missing = offer.stores.flatMap(of => takeWhileRoom(offer, of, from)(ways(_) = _)).toSet
      offer.shards.filterNot(missing).map(shard => shard -> ways.getOrElse(shard, Here))
    } finally slots.foreach(_.expected())
  }

  private def slotsOf(offer: ShardOffer, of: OfferedStore): Seq[ShardSlot] = {
    val store = ShardStores.get(offer.stateRoot, of.store, offer.baseShards)
    of.shards.map(_._1).filter(store.has).map(store.slot)
  }

  /** Where there is no room no more is taken; the checkpoint has it. */
  private def takeWhileRoom(
      offer: ShardOffer,
      of: OfferedStore,
      from: Holder
  )(came: (Int, String) => Unit): Seq[Int] = {
    val taken = mutable.Set[Int]()
    try take(offer, of, from) { (shard, by) =>
        came(shard, by)
        taken += shard
      }
    catch {
      case e: PenstockException if e.errorClass == "PENSTOCK_STATE_TOO_LARGE" => of.shards.map(_._1).filterNot(taken)
    }
  }

  /** Gives those that did not come. */
  private def take(offer: ShardOffer, of: OfferedStore, from: Holder)(came: (Int, String) => Unit): Seq[Int] = {
    val store = ShardStores.get(offer.stateRoot, of.store, offer.baseShards)
    val lineages = of.shards.filter { case (shard, _) => store.has(shard) }.toMap
    val (here, elsewhere) = lineages.toSeq.partition { case (shard, lineage) => store.slot(shard).has(lineage) }
    here.foreach { case (shard, lineage) =>
      store.slot(shard).adopt(lineage, of.version, throw new IllegalStateException("it is held"))
    }
    val refused = mutable.Set[Int]()
    val wanted = elsewhere.map { case (shard, lineage) => WantedShard(shard, lineage, store.slot(shard).lineage) }
    val left = new ShardTravel(offer.stateRoot, of.store).bring(wanted, _ => Seq(from)) { (shard, what, by) =>
      val slot = store.slot(shard)
      val lineage = lineages(shard)
      val here = what match {
        case ShardTravel.Content(loaded) => slot.adopt(lineage, of.version, loaded)
        case ShardTravel.Changes(base, bytes) =>
          slot.prepare(lineage, base, new SharedBytes(bytes, store.memory), 0, bytes.length)
          slot.has(lineage) && slot.adopt(lineage, of.version, throw new IllegalStateException("it is held"))
      }
      try StateMemory.bound.verify()
      catch {
        case e: Throwable =>
          slot.forget()
          throw e
      } finally slot.expected()
      if (here) came(shard, by) else refused += shard
    }
    left ++ refused ++ of.shards.map(_._1).filterNot(store.has)
  }
}
