package org.apache.spark.sql.penstock.state

import scala.collection.immutable.TreeMap
import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._

import io.penstock.Seed
import io.penstock.errors.PenstockException
import io.penstock.state.engine.{KeyBytes, ShardState}
import io.penstock.state.format.FamilyTraits
import io.penstock.telemetry.StateInUse
import org.scalatest.funsuite.AnyFunSuite

/** Compares a family over several shards with a sorted map: committed content below, an attempt's changes above. */
class FamilyViewSuite extends AnyFunSuite {
  private val seed = Seed.value
  private val keySchema = new StructType().add("g", LongType).add("t", LongType)
  private val valueSchema = new StructType().add("v", LongType)
  private val keyOf = UnsafeProjection.create(keySchema)
  private val prefixOf = UnsafeProjection.create(new StructType().add("g", LongType))
  private val valueOf = UnsafeProjection.create(valueSchema)
  private val shardCount = 8
  private val leased = Array(1, 2, 5, 6)
  private type Key = (Long, Long)
  private type Model = TreeMap[Key, Long]

  private def row(k: Key): UnsafeRow = keyOf(InternalRow(k._1, k._2)).copy()
  private def valueRow(v: Long): UnsafeRow = valueOf(InternalRow(v)).copy()
  private def shardOf(g: Long): Int = leased(math.floorMod(g, leased.length.toLong).toInt)

  private object ByGroup extends ShardExtractor {
    override def ofKey(key: UnsafeRow): Int = shardOf(key.getLong(0))
    override def hashOf(key: UnsafeRow): Int = key.getLong(0).toInt
    override def ofPrefix(prefix: UnsafeRow): Int = shardOf(prefix.getLong(0))
    override def ofBound(bound: UnsafeRow): Int = -1
  }

  private val specs = Seq(
    "hash" -> NoPrefixKeyStateEncoderSpec(keySchema),
    "prefix" -> PrefixKeyScanStateEncoderSpec(keySchema, 1),
    // Sorted by time first, so that neighbours in this order are in different shards.
    "range" -> RangeKeyScanStateEncoderSpec(keySchema, Seq(1))
  )

  test("reads, writes, scans and committed keys are counted per shard") {
    val content: Model = TreeMap((0L, 1L) -> 1L, (0L, 2L) -> 2L, (1L, 1L) -> 3L)
    val view = viewOf(specs(1)._2, content)
    assert(leased.map(view.operations).toSeq == Seq(0L, 0L, 0L, 0L))
    view.get(row((0L, 1L)))
    view.put(row((0L, 3L)), valueRow(4L))
    view.remove(row((1L, 1L)))
    view.prefixed(prefixOf(InternalRow(1L))).foreach(_ => ())
    assert(leased.map(view.operations).toSeq == Seq(2L, 2L, 0L, 0L))
    view.entries.foreach(_ => ())
    assert(leased.map(view.operations).toSeq == Seq(3L, 3L, 1L, 1L))
    assert(leased.map(view.sizeBelow).toSeq == Seq(2L, 1L, 0L, 0L) && view.size == 3L)
  }

  test("the watch of a key ends when the state of another key is used") {
    val inUse = new StateInUse
    val view = viewOf(specs(0)._2, TreeMap((0L, 1L) -> 1L), inUse)
    assert(inUse.doneAt(otherwise = 5L) == 5L)
    inUse.watch(0)
    view.get(row((0L, 1L)))
    view.put(row((0L, 2L)), valueRow(1L))
    val between = System.nanoTime()
    assert(inUse.isWatched && inUse.doneAt(otherwise = between + 1) <= between)
    inUse.watch(0)
    view.put(row((0L, 2L)), valueRow(2L))
    val own = System.nanoTime()
    view.get(row((1L, 1L)))
    val other = System.nanoTime()
    view.get(row((0L, 1L)))
    assert(!inUse.isWatched && own <= inUse.doneAt(otherwise = 0L) && inUse.doneAt(otherwise = 0L) <= other)
  }

  private def randomKey(r: Random): Key = (r.nextInt(9).toLong, r.nextInt(40).toLong - 5)

  private def viewOf(spec: KeyStateEncoderSpec, content: Model, inUse: StateInUse = new StateInUse): FamilyView = {
    val codec = FamilyCodec.unsafeRow(keySchema, valueSchema, spec)
    val below = new Array[ShardState](shardCount)
    leased.foreach(below(_) = new ShardState)
    content.foreach { case (k, v) =>
      val family = below(shardOf(k._1)).family("f", FamilyTraits(codec.ordered, multiValued = false))
      val (key, value) = (codec.key(row(k), new KeyBytes), codec.value(valueRow(v), new KeyBytes))
      family.put(key.base, key.offset, key.length, value.base, value.offset, value.length)
    }
    new FamilyView(
      "f",
      codec,
      ByGroup,
      multiValued = false,
      isInternal = false,
      leased,
      below,
      _ => ShardMoves.None,
      "test",
      inUse,
      _ => ()
    )
  }

  private def read(view: FamilyView, entries: Iterator[Entry]): Vector[(Key, Long)] = entries.map { e =>
    val key = view.keyRow(e)
    ((key.getLong(0), key.getLong(1)), view.valueRow(e).getLong(0))
  }.toVector

  private def change(r: Random, view: FamilyView, m: Model): Model = {
    val k = randomKey(r)
    if (r.nextInt(3) == 0) {
      view.remove(row(k))
      m - k
    } else {
      val v = r.nextLong()
      view.put(row(k), valueRow(v))
      m.updated(k, v)
    }
  }

  /** Range order: time first, then the rest of the key. */
  private def byTime(m: Model): Vector[(Key, Long)] = m.toVector.sortBy { case ((g, t), _) => (t, g) }

  specs.foreach { case (name, spec) =>
    test(s"$name family: lookups, scans and order over several shards match one map") {
      info(s"seed $seed")
      val r = new Random(seed)
      (0 until 60).foreach { _ =>
        var m: Model = TreeMap.from(Seq.fill(r.nextInt(80))(randomKey(r) -> r.nextLong()))
        val view = viewOf(spec, m)
        (0 until 4).foreach { _ =>
          (0 until r.nextInt(30)).foreach(_ => m = change(r, view, m))
          assert(view.size === m.size)
          val k = randomKey(r)
          assert(Option(view.get(row(k))).map(_.getLong(0)) === m.get(k) && view.contains(row(k)) === m.contains(k))
          val all = read(view, view.entries)
          assert(all.sorted === m.toVector.sorted)
          if (name == "prefix") {
            (0L until 9L).foreach { g =>
              val found = read(view, view.prefixed(prefixOf(InternalRow(g)).copy()))
              assert(found.sorted === m.toVector.filter(_._1._1 == g).sorted)
            }
            assert(all.map(_._1._1).distinct.size === runs(all.map(_._1._1)), "the keys of a prefix come together")
          }
          if (name == "range") {
            assert(all === byTime(m))
            val from = r.nextInt(40).toLong - 5
            val to = from + r.nextInt(10)
            val found = read(view, view.ranged(Some(row((0L, from))), Some(row((0L, to)))))
            assert(found === byTime(m).filter { case ((_, t), _) => t >= from && t < to })
            assert(read(view, view.ranged(None, Some(row((0L, to))))) === byTime(m).filter(_._1._2 < to))
            assert(read(view, view.ranged(Some(row((0L, from))), None)) === byTime(m).filter(_._1._2 >= from))
          }
        }
      }
    }

    test(s"$name family: an iterator does not see changes made after it was opened") {
      info(s"seed $seed")
      val r = new Random(seed)
      (0 until 60).foreach { _ =>
        var m: Model = TreeMap.from(Seq.fill(r.nextInt(80))(randomKey(r) -> r.nextLong()))
        val view = viewOf(spec, m)
        (0 until r.nextInt(30)).foreach(_ => m = change(r, view, m))
        val before = m
        val walk = view.entries
        val seen = Vector.newBuilder[(Key, Long)]
        while (walk.hasNext) {
          val e = walk.next()
          seen ++= read(view, Iterator(e))
          if (r.nextInt(2) == 0) {
            view.remove(view.keyRow(e))
            m -= seen.result().last._1
          }
          m = change(r, view, m)
        }
        assert(seen.result().sorted === before.toVector.sorted)
        assert(read(view, view.entries).sorted === m.toVector.sorted)
      }
    }

    test(s"$name family: a key of a shard that is not leased is rejected") {
      val foreign = new ShardExtractor {
        override def ofKey(key: UnsafeRow): Int = 3
        override def hashOf(key: UnsafeRow): Int = 3
        override def ofPrefix(prefix: UnsafeRow): Int = 3
        override def ofBound(bound: UnsafeRow): Int = 3
      }
      val below = new Array[ShardState](shardCount)
      leased.foreach(below(_) = new ShardState)
      val codec = FamilyCodec.unsafeRow(keySchema, valueSchema, spec)
      val view = new FamilyView(
        "f",
        codec,
        foreign,
        false,
        false,
        leased,
        below,
        _ => ShardMoves.None,
        "test",
        new StateInUse,
        _ => ()
      )
      def refused(body: => Any): Unit =
        assert(intercept[PenstockException](body).errorClass == "PENSTOCK_MISROUTED_KEY")
      refused(view.get(row((1, 1))))
      refused(view.put(row((1, 1)), valueRow(1)))
      refused(view.remove(row((1, 1))))
      if (codec.supportsPrefixScan) refused(view.prefixed(prefixOf(InternalRow(1L)).copy()))
      if (codec.supportsRangeScan) refused(view.ranged(Some(row((1, 1))), None))
      assert(view.entries.isEmpty && view.size == 0)
    }
  }

  private def runs(ids: Seq[Long]): Int = if (ids.isEmpty) 0 else 1 + ids.zip(ids.tail).count { case (a, b) => a != b }
}
