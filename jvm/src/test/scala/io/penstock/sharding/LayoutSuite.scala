package io.penstock.sharding

import io.penstock.PropertyChecks
import io.penstock.state.format.{ByteSink, ByteSource, PinSlots}
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class LayoutSuite extends AnyFunSuite with PropertyChecks {
  private val change = Gen.zip(Layouts.layout, Layouts.pinned)
  private val hashes = Gen.listOfN(20, Layouts.hash)

  test("a pinned hash has its own shard; every other hash is in its base shard") {
    check(Prop.forAll(Layouts.layout, hashes) { (layout, hashes) =>
      val all = hashes ++ layout.pinned
      val inBase = all.filterNot(layout.pinned).forall(h => layout.shardOf(h) == Math.floorMod(h, layout.baseShards))
      val own = layout.pinned.toSeq.map(layout.shardOf)
      inBase && own.distinct == own && own.forall(s => s >= layout.baseShards && s < layout.shards) &&
      layout.pinned.forall(h => layout.hashOf(layout.shardOf(h)).contains(h))
    })
  }

  test("pinning keeps already pinned hashes in place and fills free slots before adding slots") {
    check(Prop.forAll(change) { case (before, pinned) =>
      val after = before.pinning(pinned)
      after.pinned == pinned &&
      (before.pinned & pinned).forall(h => after.shardOf(h) == before.shardOf(h)) &&
      after.pinSlots.size <= math.max(before.pinSlots.size, pinned.size) &&
      after.pinSlots.lastOption.forall(_.nonEmpty)
    })
  }

  test("moves match the change of shards, and no shard continues with another's keys") {
    check(Prop.forAll(change, hashes) { case ((before, pinned), hashes) =>
      val after = before.pinning(pinned)
      val all = (hashes ++ before.pinned ++ pinned).distinct
      val moved = all.filter(h => before.shardOf(h) != after.shardOf(h)).toSet
      after.moves(before).map(_.hash).toSet == moved &&
      after.moves(before).forall(m => m.from == before.shardOf(m.hash) && m.to == after.shardOf(m.hash)) &&
      // A shard that continues has its earlier keys except those that moved away. One that does not continue has only
      // keys that moved in.
      all.forall { h =>
        val s = after.shardOf(h)
        moved(h) || (after.continues(s, before) && before.shardOf(h) == s)
      } && (0 until after.shards).filterNot(after.continues(_, before)).forall { s =>
        after.hashOf(s).forall(h => after.moves(before).exists(m => m.to == s && m.hash == h))
      }
    })
  }

  test("a state partition consists of its base shard and its pinned hashes") {
    check(Prop.forAll(Layouts.layout, hashes) { (layout, hashes) =>
      (hashes ++ layout.pinned).forall { h =>
        (0 until layout.baseShards).forall(p =>
          layout.ofPartition(p).contains(layout.shardOf(h)) == (layout.baseShardOf(h) == p) ||
            layout.shardOf(h) == p
        )
      } && (0 until layout.baseShards).flatMap(layout.ofPartition).sorted ==
        (0 until layout.baseShards) ++ layout.pinned.toSeq.map(layout.shardOf).sorted
    })
  }

  test("pin slots read back as written") {
    check(Prop.forAll(Layouts.layout) { layout =>
      val out = new ByteSink
      PinSlots.put(out, layout.pinSlots)
      PinSlots.get(new ByteSource(out.toByteArray)) == layout.pinSlots
    })
  }

  test("too many pin slots are rejected") {
    val e = intercept[IllegalArgumentException](Layout(4).pinning((0 to Layout.MaxPinSlots).toSet))
    assert(e.getMessage.contains("at most 1024"))
  }
}
