package org.apache.spark.sql.penstock.commit

import org.apache.spark.sql.penstock.lease._

import io.penstock.telemetry.MovedState
import org.scalatest.funsuite.AnyFunSuite

/** A run knows which executors hold its shards, and what moved between them. */
class ShardLocationsSuite extends AnyFunSuite with QueryRuns {

  test("the state load of each shard is the one that was reported last") {
    val c = commits(root())
    assert(c.stateLoadsOf(0L).isEmpty)
    open(c, 0)
    commit(c, 0, Seq(0, 1), "first")
    commit(c, 0, Seq(2, 3), "other")
    assert(c.stateLoadsOf(0L)(store).bytes.toSeq == Seq(5L, 5L, 5L, 5L))
    open(c, 1)
    commit(c, 1, Seq(1, 3), "three")
    commit(c, 1, Seq(1), "two")
    val load = c.stateLoadsOf(0L)(store)
    assert(load.bytes.toSeq == Seq(5L, 3L, 5L, 5L) && c.stateLoadsOf(7L).isEmpty)
    assert(load.keys.toSeq == load.bytes.toSeq.map(_ * 10) && load.operations.toSeq == load.bytes.toSeq.map(_ * 100))
  }

  test("the holders of a shard are the executors that reported their addresses") {
    val c = commits(root())
    assert(open(c, 0).holders.of(0).isEmpty)
    commit(c, 0, Seq(0, 1), "first")
    commit(c, 0, Seq(2, 3), "other")
    val holders = open(c, 1).holders
    val (first, other) =
      (Holder("executor_h_first", Map("tcp" -> "first")), Holder("executor_h_other", Map("tcp" -> "other")))
    assert((0 until 5).map(holders.of) == Seq(Seq(first), Seq(first), Seq(other), Seq(other), Nil))
    val holding = Holders.of(Array("a", null, "b"), Array("b", "b"), Map("b" -> Map.empty[String, String]))
    assert(holding.byShard.toSeq == Seq(-1, -1, 0) && holding.replicas.toSeq == Seq(0, 0))
    // The replica comes after the owner.
    c.copied(0L, "executor_h_other", Seq(0, 1, 2), Seq(0, 2))
    commit(c, 1, Seq(0, 1), "first")
    commit(c, 1, Seq(2, 3), "other")
    val copies = open(c, 2).holders
    assert((0 until 3).map(copies.of) == Seq(Seq(first, other), Seq(first), Seq(other)))
    // A replica that was not copied again is dropped.
    c.copied(0L, "executor_h_other", Seq(0), Nil)
    assert(c.replicasOf(0L).toSeq == Seq(null, null, "executor_h_other"))
  }

  test("shards that came to another executor and the time to bring them are counted per batch") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "first")
    assert(c.movedOf(0L) == MovedState(0, "first".length, Map("first" -> 4)))
    open(c, 1)
    commit(c, 1, Seq(0, 1, 2), "first")
    commit(c, 1, Seq(3), "other")
    val brought = Map("first" -> 3, "other" -> 1)
    assert(c.movedOf(0L) == MovedState("other".length, "first".length + "other".length, brought))
    assert(c.movedOf(0L).inWords == "first 3, other 1" && MovedState.Nothing.inWords.isEmpty)
    assert(c.movedOf(7L) == MovedState.Nothing)
    open(c, 2)
    assert(c.movedOf(0L) == MovedState.Nothing)
    commit(c, 2, Seq(0, 3), "other")
    commit(c, 2, Seq(1, 2), "third")
    assert(c.movedOf(0L).bytes == "other".length + 2 * "third".length)
  }
}
