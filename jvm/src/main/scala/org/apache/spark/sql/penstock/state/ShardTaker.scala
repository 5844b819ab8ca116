package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.state.format.{OfferedStore, ShardOffer}

/** Takes shards that an executor which ends hands over, out of its memory. */
object ShardTaker {

  /** Gives those of which all that was offered is here now. */
  def take(offer: ShardOffer): Seq[Int] = {
    val from = Holder(offer.executor, offer.addresses)
    val missing = offer.stores.flatMap(take(offer, _, from)).toSet
    offer.stores.flatMap(_.shards.map(_._1)).distinct.filterNot(missing)
  }

  /** Gives those that did not come. */
  private def take(offer: ShardOffer, of: OfferedStore, from: Holder): Seq[Int] = {
    val store = ShardStores.get(offer.stateRoot, of.store, offer.home)
    val lineages = of.shards.filter { case (shard, _) => store.has(shard) }.toMap
    val (here, elsewhere) = lineages.toSeq.partition { case (shard, lineage) => store.slot(shard).has(lineage) }
    here.foreach { case (shard, lineage) =>
      store.slot(shard).adopt(lineage, of.version, throw new IllegalStateException("it is held"))
    }
    val refused = mutable.Set[Int]()
    val left = new ShardTravel(offer.stateRoot, of.store).bring(elsewhere, _ => Some(from)) { (shard, loaded, _) =>
      val slot = store.slot(shard)
      if (!slot.adopt(lineages(shard), of.version, loaded)) refused += shard
      // Where there is no room it is not taken; the checkpoint has it.
      try StateMemory.bound.verify()
      catch {
        case e: Throwable =>
          slot.forget()
          throw e
      }
    }
    left ++ refused ++ of.shards.map(_._1).filterNot(store.has)
  }
}
