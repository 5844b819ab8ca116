package org.apache.spark.sql.penstock.state

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease.OperatorKind
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

import io.penstock.SameOnEverySpark
import io.penstock.Seed
import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.engine.{FamilyState, KeyBytes, ShardState}
import io.penstock.state.format._
import io.penstock.telemetry.{StateInUse, StoreTimings}
import org.scalatest.funsuite.AnyFunSuite

/** Compares a store whose keys are pinned and unpinned between versions with a map. */
@SameOnEverySpark
class ShardMovesSuite extends AnyFunSuite {
  import ShardMovesSuite._

  test("content matches a map and each key is in the shard of its hash, whatever is pinned") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    (0 until 40).foreach { _ =>
      val store = new Versions(baseShards = 1 + r.nextInt(4))
      val hashes = (0L until Groups).map(hashOf)
      var model = Map.empty[(Long, Long), Seq[Long]]
      var timers = Set.empty[(Long, Long)]
      (0 until 8).foreach { _ =>
        val pinned = if (r.nextInt(4) == 0) store.layout.pinned else hashes.filter(_ => r.nextInt(4) == 0).toSet
        val before = model
        store.batch(store.layout.pinning(pinned)) { tasks =>
          (0 until r.nextInt(30)).foreach { _ =>
            val (g, t, v) = (r.nextInt(Groups.toInt).toLong, r.nextInt(5).toLong, r.nextLong())
            val (key, task) = (row(g, t), tasks(hashOf(g)))
            val timer = timerRow(t, g)
            if (timers((t, g)) && r.nextBoolean()) {
              timers -= ((t, g))
              task.remove(timer, Timers)
            } else {
              timers += ((t, g))
              task.put(timer, valueRow(0L), Timers)
            }
            model = r.nextInt(4) match {
              case 0 =>
                Seq(Plain, Lists).foreach(task.remove(key, _))
                model - ((g, t))
              case 1 =>
                task.put(key, valueRow(v), Plain)
                task.merge(key, valueRow(v), Lists)
                model.updated((g, t), model.getOrElse((g, t), Nil) :+ v)
              case _ =>
                task.put(key, valueRow(v), Plain)
                task.putList(key, Array(valueRow(v), valueRow(-v)), Lists)
                // The plain value is the newest value of the list. The test compares lists, and the last values of
                // lists.
                task.put(key, valueRow(-v), Plain)
                model.updated((g, t), Seq(v, -v))
            }
          }
          assert(tasks.views.map(_.metrics.numKeys).sum == 2 * model.size)
          val seen =
            tasks.views.map(_.iterator(Timers).map(p => (p.key.getLong(0), p.key.getStruct(1, 1).getLong(0))).toVector)
          assert(seen.flatten.toSet == timers && seen.map(_.size).sum == timers.size)
          seen.foreach(timersOfTask => assert(timersOfTask.map(_._1) == timersOfTask.map(_._1).sorted))
        }
        assert(store.lists == model && store.plain == model.map { case (k, vs) => k -> vs.last })
        assert(store.misplaced.isEmpty)
        // Replayed changes are those of the operator; moves of keys between shards are not visible.
        assert(store.replayed(before) == model)
      }
    }
  }

  test("a family that was not opened cannot be split, and can be joined again") {
    val store = new Versions(baseShards = 2)
    val hot = hashOf(1L)
    store.batch(store.layout)(tasks => tasks(hot).put(row(1L, 0L), valueRow(7L), Plain))
    val e = intercept[Exception](store.batch(store.layout.pinning(Set(hot)), families = Nil)(_ => ()))
    val cause = e.getCause.asInstanceOf[PenstockException]
    assert(cause.errorClass == "PENSTOCK_UNMOVABLE_FAMILY" && cause.detail.contains(s"column family $Plain"))
    assert(cause.detail.contains("spark.penstock.pinned.max=0"))

    store.batch(store.layout.pinning(Set(hot)))(_ => ())
    assert(store.misplaced.isEmpty && store.layout.pinned == Set(hot))
    store.batch(store.layout.pinning(Set.empty), families = Nil)(_ => ())
    assert(store.plain == Map((1L, 0L) -> 7L) && store.misplaced.isEmpty)
  }

  test("a family that is removed in the batch that would move its keys is removed") {
    val store = new Versions(baseShards = 2)
    val hot = hashOf(1L)
    store.batch(store.layout)(tasks => tasks(hot).put(row(1L, 0L), valueRow(7L), Plain))
    store.batch(store.layout.pinning(Set(hot)), families = Seq(Lists)) { tasks =>
      tasks.views.foreach(_.removeColFamilyIfExists(Plain))
    }
    assert(store.plain.isEmpty)
    store.batch(store.layout.pinning(Set.empty))(tasks => assert(tasks(hot).get(row(1L, 0L), Plain) == null))
  }
}

object ShardMovesSuite {
  private val Groups = 12L
  private val Plain = "plain"
  private val Lists = "lists"
  private val keySchema = new StructType().add("g", LongType).add("t", LongType)
  private val wrapped = new StructType().add("grouping", new StructType().add("g", LongType)).add("t", LongType)
  private val Timers = "$procTimers_ProcessingTime_timestampToKey"
  private val timerSchema =
    new StructType().add("expiry", LongType).add("grouping", new StructType().add("g", LongType))
  private val timerOf = UnsafeProjection.create(timerSchema)
  private val valueSchema = new StructType().add("v", LongType)
  private val keyOf = UnsafeProjection.create(wrapped)
  private val valueOf = UnsafeProjection.create(valueSchema)
  private val hash = ShardHash.ofFields(keySchema, 1, Layout(1))
  private val conf = new StateStoreConf(new SQLConf)

  private def hashOf(g: Long): Int = hash.ofKey(InternalRow(g, 0L))
  private def row(g: Long, t: Long): UnsafeRow = keyOf(InternalRow(InternalRow(g), t)).copy()
  private def timerRow(t: Long, g: Long): UnsafeRow = timerOf(InternalRow(t, InternalRow(g))).copy()
  private def valueRow(v: Long): UnsafeRow = valueOf(InternalRow(v)).copy()

  /** The tasks of a batch, one for each shard. */
  final private class Tasks(layout: Layout, val views: Seq[ShardedStateStore]) {
    def apply(hash: Int): ShardedStateStore = views(layout.shardOf(hash))
  }

  /** The versions of a store of a transformWithState operator. */
  final private class Versions(baseShards: Int) {
    var layout: Layout = Layout(baseShards)
    private var shards = Vector.fill(baseShards)(new ShardState)
    private val committed = mutable.Map[Int, Array[Byte]]()
    private val specs = Seq(
      (Timers, RangeKeyScanStateEncoderSpec(timerSchema, Seq(0)), false),
      (Plain, PrefixKeyScanStateEncoderSpec(wrapped, 1), false),
      (Lists, PrefixKeyScanStateEncoderSpec(wrapped, 1), true)
    )

    def batch(next: Layout, families: Seq[String] = Seq(Plain, Lists, Timers))(body: Tasks => Unit): Unit = {
      committed.clear()
      val views = (0 until next.shards).map { s =>
        val id = StateStoreId("nowhere", 0L, s)
        val described = new StoreFamilies(
          wrapped,
          valueSchema,
          NoPrefixKeyStateEncoderSpec(wrapped),
          useColumnFamilies = true,
          multiValued = false,
          "unsaferow",
          None
        )
        val store = new ShardedStateStore(id, 0L, new Scope(next, s), described, conf, readOnly = false)
        specs.filter(f => families.contains(f._1)).foreach { case (name, spec, multiValued) =>
          val schema = if (name == Timers) timerSchema else wrapped
          store.createColFamilyIfAbsent(name, schema, valueSchema, spec, multiValued, isInternal = name == Timers)
        }
        store
      }
      body(new Tasks(next, views))
      views.foreach(_.commit())
      shards = Vector.tabulate(next.shards) { s =>
        val state = if (next.continues(s, layout)) shards(s) else new ShardState
        committed.get(s).foreach(bytes => state(bytes, 0, bytes.length))
        state
      }
      layout = next
    }

    final private class Scope(next: Layout, shard: Int) extends StoreScope {
      override def shards: Array[Int] = Array(shard)
      override def shardCount: Int = next.shards
      override def describe: String = s"shard $shard"
      override def extractor(
          name: String,
          keySchema: StructType,
          spec: KeyStateEncoderSpec,
          prefixedMain: => Boolean
      ): ShardExtractor = ShardExtractor.of(OperatorKind.TransformWithState, next, name, keySchema, spec, prefixedMain)
      override def open(timings: StoreTimings): Array[ShardState] = {
        val out = new Array[ShardState](next.shards)
        out(shard) = if (next.continues(shard, layout)) Versions.this.shards(shard) else new ShardState
        out
      }
      override def moves(s: Int): ShardMoves = ShardMoves.of(s, next, layout)(Versions.this.shards)
      override def commit(
          changes: ByteSink,
          sections: Seq[Section],
          keys: Array[Long],
          operations: Array[Long]
      ): Unit = sections.foreach { s =>
        committed(s.shard) = changes.array.slice(s.offset.toInt, s.offset.toInt + s.length)
      }
    }

    def plain: Map[(Long, Long), Long] = content(Plain).map { case (k, (_, vs)) => k -> vs.head }
    def lists: Map[(Long, Long), Seq[Long]] = content(Lists).map { case (k, (_, vs)) => k -> vs }

    /** Keys in another shard than that of their hash, with the shard. */
    def misplaced: Map[(Long, Long), Int] =
      Seq(Plain, Lists).flatMap(content(_)).collect {
        case (k, (s, _)) if layout.shardOf(hashOf(k._1)) != s => k -> s
      }.toMap

    /** Every key of a family with its shard and values. Fails if a key is in two shards. */
    private def content(name: String): Map[(Long, Long), (Int, Seq[Long])] = {
      val all = shards.zipWithIndex.flatMap { case (state, s) =>
        entries(state, name).map { case (k, vs) => k -> ((s, vs)) }
      }
      assert(all.map(_._1).distinct.size == all.size, s"a key of $name is in two shards")
      all.toMap
    }

    private def entries(state: ShardState, name: String): Seq[((Long, Long), Seq[Long])] = {
      val (_, spec, multiValued) = specs.find(_._1 == name).get
      Option(state.familyOrNull(name)).toSeq.flatMap { family =>
        val below = Array(state)
        val codec = FamilyCodec.unsafeRow(wrapped, valueSchema, spec)
        val view = new FamilyView(
          name,
          codec,
          new ShardExtractor.Fixed(0),
          multiValued,
          false,
          Array(0),
          below,
          _ => ShardMoves.None,
          "test",
          new StateInUse,
          _ => ()
        )
        assert(view.size == family.table.size)
        view.entries.map { e =>
          val key = view.keyRow(e)
          val values = if (multiValued) view.valueRows(e) else Iterator(view.valueRow(e))
          (key.getStruct(0, 1).getLong(0), key.getLong(1)) -> values.map(_.getLong(0)).toVector
        }.toVector
      }
    }

    /** The lists of `before` with all later changes applied. */
    def replayed(before: Map[(Long, Long), Seq[Long]]): Map[(Long, Long), Seq[Long]] = {
      val state = new ShardState
      val codec = FamilyCodec.unsafeRow(wrapped, valueSchema, PrefixKeyScanStateEncoderSpec(wrapped, 1))
      val family = state.family(Lists, FamilyTraits(codec.ordered, multiValued = true))
      before.foreach { case ((g, t), vs) =>
        val key = codec.key(row(g, t), new KeyBytes)
        val out = new ByteSink
        vs.foreach { v =>
          val value = valueRow(v)
          FamilyState.writeValue(out, value.getBaseObject, value.getBaseOffset, value.getSizeInBytes)
        }
        family.put(
          key.base,
          key.offset,
          key.length,
          out.array,
          Platform.BYTE_ARRAY_OFFSET.toLong,
          out.size
        )
      }
      committed.values.foreach(bytes => ChangeSet.read(bytes, 0, bytes.length, new ChangesOnly(state)))
      entries(state, Lists).toMap
    }
  }
}
