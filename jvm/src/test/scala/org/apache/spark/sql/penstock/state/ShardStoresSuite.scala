package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.{CountDownLatch, Executors}

import org.apache.spark.sql.penstock.components.ExecutorComponents

import io.penstock.Patience
import io.penstock.state.engine.ShardState
import io.penstock.state.format.StoreKey
import org.scalatest.funsuite.AnyFunSuite

/** Which shards a JVM keeps while queries end, restart and hang. */
class ShardStoresSuite extends AnyFunSuite with Patience {
  private val stores = new ShardStores
  private val key = StoreKey(0L, "default")

  private def fill(slot: ShardSlot, batchId: Long): Unit =
    slot.open(new UUID(9, batchId), batchId)(ShardSlot.Loaded(new ShardState, 1, 1L)).close()

  test("a new checkpoint at an old path may have another number of shards") {
    val root = "stores-other-number"
    fill(stores.get(root, key, 4).slot(3), 1L)
    val larger = stores.get(root, key, 4096)
    assert(larger.slot(4000).shard == 4000 && larger.loaded.count(_.isHeld) == 0)
    assert(stores.get(root, key, 4096) eq larger)
    stores.drop(root)
  }

  test("shards of ended queries are dropped, even if none has asked for a snapshot") {
    val (ended, running) = ("stores-ended", "stores-running")
    Seq(ended, running).foreach(root => fill(stores.get(root, key, 4).slot(0), 1L))
    val sweeper = new ShardSweeper(stores, 50L, _ - ended)
    try eventually(assert(stores.find(ended, key).isEmpty && stores.find(running, key).nonEmpty))
    finally sweeper.close()
    stores.drop(running)
    val executor = ExecutorComponents.start(Map.empty, "driver")
    try {
      val threads = Thread.getAllStackTraces.keySet
      assert(threads.stream().anyMatch(_.getName.startsWith("penstock-sweep")), "a JVM with shards has a sweeper")
    } finally executor.shutdown()
  }

  test("a shard that is being loaded blocks neither reclaiming nor questions from other executors") {
    val root = "stores-hanging"
    val slot = stores.get(root, key, 4).slot(0)
    val reached, goOn = new CountDownLatch(1)
    val threads = Executors.newSingleThreadExecutor()
    threads.execute { () =>
      slot.open(new UUID(9, 1L), 1L) {
        reached.countDown()
        goOn.await()
        ShardSlot.Loaded(new ShardState, 1, 1L)
      }.close()
    }
    reached.await()
    try {
      stores.dropUnneeded(Set(root), Map(root -> 100L))
      assert(slot.give(new UUID(9, 1L), new UUID(9, 0L)).isEmpty)
    } finally {
      goOn.countDown()
      threads.shutdown()
    }
    stores.drop(root)
  }
}
