package io.penstock.state.format

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

class SnapshotLagSuite extends AnyFunSuite {
  private def section(length: Int) = SectionRef(Container.InManifest(0L, 0L), 0L, length, 0)
  private def delta(version: Long, length: Int) = DeltaRef(version, new UUID(1L, version), section(length))
  private def snapshot(version: Long) = Some(SnapshotRef(version, new UUID(1L, version), section(1000)))

  private def lags(batchId: Long, stores: (StoreKey, Vector[ShardRefs])*): Seq[SnapshotLag] =
    SnapshotLag.of(Manifest(batchId, 0L, -1L, 0L, new UUID(0L, 0L), 0L, 4, stores.toMap))

  test("a store without changes since its snapshots has no lag") {
    val store = StoreKey(0L, "default")
    assert(lags(9L, store -> Vector(ShardRefs.Empty, ShardRefs(snapshot(3L), Vector.empty))) ==
      Seq(SnapshotLag(store, 0L, 0L, 0L)))
    assert(lags(-1L).isEmpty)
  }

  test("a change of the batch itself is one batch old, and the oldest change of all shards counts") {
    val store = StoreKey(0L, "default")
    assert(lags(
      9L,
      store -> Vector(ShardRefs(snapshot(9L), Vector(delta(10L, 7))))
    ) == Seq(SnapshotLag(store, 1L, 1L, 7L)))
    val shards = Vector(
      ShardRefs(snapshot(6L), Vector(delta(8L, 10), delta(10L, 20))),
      ShardRefs(None, Vector(delta(2L, 5), delta(3L, 6))),
      ShardRefs(snapshot(10L), Vector.empty)
    )
    assert(lags(9L, store -> shards) == Seq(SnapshotLag(store, 9L, 4L, 41L)))
  }

  test("lags are reported per store, in order") {
    val (a, b, c) = (StoreKey(1L, "b"), StoreKey(0L, "z"), StoreKey(1L, "a"))
    val one = Vector(ShardRefs(None, Vector(delta(1L, 3))))
    assert(lags(0L, a -> one, b -> one, c -> Vector(ShardRefs.Empty)).map(l => (l.store, l.changes)) ==
      Seq((b, 1L), (c, 0L), (a, 1L)))
  }
}
