package org.apache.spark.sql.penstock.commit

import java.util.UUID

import org.apache.spark.sql.penstock.lease._

import io.penstock.sharding.Layout
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite

/** Shards are offered by the executors that hold them, to those that are to receive them. */
class ShardOffersSuite extends AnyFunSuite with QueryRuns {
  private val all: String => Boolean = _ => true

  test("an ending executor offers its shards to the others, at the lineage that the next batch needs") {
    val c = commits(root())
    assert(c.handOver("executor_h_first")(all).isEmpty)
    open(c, 0)
    val lineage = commit(c, 0, Seq(0, 1), "first")
    // There is no other executor yet that could take the shards.
    assert(c.handOver("executor_h_first")(all).isEmpty)
    commit(c, 0, Seq(2), "other")
    commit(c, 0, Seq(3), "third")
    def offered(): Map[String, Seq[(Long, Int, UUID)]] = c.handOver("executor_h_first")(all).map { h =>
      val offer = ShardOffer.decode(h.offer)
      assert(h.to.addresses == Map("tcp" -> h.to.executor.stripPrefix("executor_h_")))
      assert((offer.stateRoot, offer.baseShards) == (c.stateRoot, shardCount))
      assert((offer.executor, offer.addresses) == ("executor_h_first", Map("tcp" -> "first")))
      h.to.executor -> offer.stores.flatMap { s =>
        assert(s.store == store)
        s.shards.map { case (shard, lineage) => (s.version, shard, lineage) }
      }
    }.toMap
    val wanted = Map("executor_h_other" -> Seq((1L, 0, lineage)), "executor_h_third" -> Seq((1L, 1, lineage)))
    assert(offered() == wanted)
    val base = open(c, 1).base.stores(store)
    assert(offered() == wanted && Seq(0, 1).forall(base.lineage(_) == lineage))
    // Executors that have ended are offered nothing, although their addresses are still known.
    val toThird = c.handOver("executor_h_first")(_ != "executor_h_other")
    assert(toThird.map(h => h.to.executor -> ShardOffer.decode(h.offer).shards) == Seq("executor_h_third" -> Seq(0, 1)))
    assert(c.handOver("executor_h_first")(_ => false).isEmpty)
    assert(c.handOver("executor_h_unknown")(all).isEmpty)
    c.handedOver(ShardsHandedOver(c.runId, 0L, "executor_h_first", "executor_h_other", Array(0, 2, 9)))
    assert(c.ownersOf(0L).toSeq == Seq("other", "first", "other", "third").map("executor_h_" + _))
    // A shard keeps an owner that has committed it since.
    commit(c, 1, Seq(1), "third")
    c.handedOver(ShardsHandedOver(c.runId, 0L, "executor_h_first", "executor_h_other", Array(1)))
    assert(c.ownersOf(0L)(1) == "executor_h_third")
    c.handedOver(ShardsHandedOver(c.runId, 7L, "executor_h_first", "executor_h_other", Array(1)))
  }

  test("shards that do not fit into one offer are split into several") {
    val n = 25000
    val c = commits(root(), shards = n)
    c.open(BatchSpec(c.runId, c.stateRoot, 0L, n, Seq(region)))(Map(0L -> Layout(n)))
    commit(c, 0, 0 until n - 1, "first")
    commit(c, 0, Seq(n - 1), "other")
    val offers = c.handOver("executor_h_first")(all).map(_.offer)
    assert(offers.size == 2 && offers.forall(_.length <= 512 * 1024))
    assert(offers.flatMap(ShardOffer.decode(_).shards).sorted == (0 until n - 1))
    assert(c.offers(0L, (0 until n).map(_ -> "executor_h_other")).size == 2)
  }

  test("shards with a planned home are offered there once the next batch is open, in the given order") {
    val c = commits(root())
    open(c, 0)
    val (first, third) = (commit(c, 0, Seq(0, 1, 2), "first"), commit(c, 0, Seq(3), "third"))
    open(c, 1)
    val planned =
      c.offers(0L, Seq(3 -> "executor_h_new", 1 -> "executor_h_new", 0 -> "executor_h_third", 2 -> "executor_h_first"))
    assert(planned.map(_._1) == Seq("executor_h_new", "executor_h_new", "executor_h_third"))
    val offers = planned.map(_._2)
    assert(offers.map(_.executor) == Seq("executor_h_third", "executor_h_first", "executor_h_first"))
    assert(offers.map(_.stores.flatMap(s => s.shards.map((s.version, _)))) == Seq(
      Seq((1L, (3, third))),
      Seq((1L, (1, first))),
      Seq((1L, (0, first)))
    ))
    assert(c.offers(7L, Seq(3 -> "executor_h_new")).isEmpty)
    c.broughtAhead(1L, 0L, "executor_h_new", Seq(3, 1))
    assert(c.ownersOf(0L).toSeq == Seq("first", "new", "first", "new").map("executor_h_" + _))
    assert(c.movedOf(0L).ahead == 2 && c.movedOf(0L).bytes == "third".length + "first".length)
    // An executor that has committed a shard since has newer content. Reports for a closed batch are ignored.
    commit(c, 1, Seq(0), "other")
    c.broughtAhead(1L, 0L, "executor_h_third", Seq(0))
    c.broughtAhead(0L, 0L, "executor_h_third", Seq(2))
    assert(c.ownersOf(0L).toSeq == Seq("other", "new", "first", "new").map("executor_h_" + _))
  }
}
