package org.apache.spark.sql.penstock.state

import java.util.UUID

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.unsafe.Platform

import io.penstock.Seed
import io.penstock.state.engine.{FamilyState, ShardState}
import io.penstock.state.format._
import io.penstock.state.memory.SharedBytes
import org.scalatest.funsuite.AnyFunSuite

/** Compares the running count of state's heap bytes with the sum over all shards. */
class StateAccountingSuite extends AnyFunSuite {
  private val stores = new ShardStores
  private val shardCount = 6
  private val store = StoreKey(0L, "default")
  private val roots = Seq("accounting-a", "accounting-b")

  /** Lineages and change sets of every shard. */
  private class Checkpoint {
    val lineages: Array[UUID] = Array.fill(shardCount)(ShardRefs.NeverWritten)
    val histories: Array[Vector[Array[Byte]]] = Array.fill(shardCount)(Vector.empty)
    var batchId = 0L

    def load(shard: Int): ShardSlot.Loaded = {
      val content = new ShardState
      histories(shard).foreach(set => content(set, 0, set.length))
      ShardSlot.Loaded(content, histories(shard).size, histories(shard).map(_.length.toLong).sum)
    }
  }

  private def changes(r: Random): Array[Byte] = {
    val out = new ByteSink
    val writer = new ChangeSet.Writer(out)
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    val families = Seq(
      "hash" -> FamilyTraits(false, false),
      "range" -> FamilyTraits(true, false),
      "list" -> FamilyTraits(false, true)
    )
    r.shuffle(families).take(1 + r.nextInt(3)).foreach { case (name, traits) =>
      if (r.nextInt(12) == 0) writer.removeFamily(name)
      else {
        writer.family(name, traits)
        (0 until r.nextInt(60)).map(_ => r.nextInt(150)).distinct.foreach { n =>
          val key = s"key $n".getBytes
          val plain = new Array[Byte](r.nextInt(300))
          val value = if (traits.multiValued) oneOfMany(plain) else plain
          r.nextInt(4) match {
            case 0 => writer.remove(key, at, key.length)
            case 1 if traits.multiValued => writer.append(key, at, key.length, value, at, value.length)
            case _ => writer.put(key, at, key.length, value, at, value.length)
          }
        }
      }
    }
    writer.finish()
    out.toByteArray
  }

  private def oneOfMany(value: Array[Byte]): Array[Byte] = {
    val out = new ByteSink
    FamilyState.writeValue(out, value, Platform.BYTE_ARRAY_OFFSET.toLong, value.length)
    out.toByteArray
  }

  private def walked: Long = stores.all.valuesIterator.map { s =>
    val slots = s.loaded.toVector
    val arrays = slots.flatMap(_.preparedChanges).map(_.array)
    val kept = new java.util.IdentityHashMap[Array[Byte], Unit]()
    arrays.foreach(kept.put(_, ()))
    var prepared = 0L
    kept.keySet.forEach(a => prepared += a.length)
    slots.map(slot => slot.contentBytes + slot.retiredBytes).sum + prepared
  }.sum

  test("after every step of a random history the count equals the sum, and dropping releases everything") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    // Unfinished attempts of other suites count, but are in no shard.
    val elsewhere = stores.memory.bytes - walked
    def same(): Unit = assert(stores.memory.bytes - elsewhere == walked)
    val before = walked
    val checkpoints = roots.map(_ -> new Checkpoint).toMap
    val seen = mutable.Set[ShardSlot.Source]()
    val held = mutable.Buffer[ShardSlot.Opened]()
    def stored(root: String) = stores.get(root, store, shardCount)

    def batch(root: String): Unit = {
      val c = checkpoints(root)
      // Shards that are not opened here are changed by another executor.
      val here = (0 until shardCount).filter(_ => r.nextInt(5) > 0)
      here.foreach { s =>
        val opened = stored(root).slot(s).open(c.lineages(s), c.batchId)(c.load(s))
        seen += opened.source
        if (r.nextInt(8) == 0) held += opened else opened.close()
        same()
      }
      val attempts = (0 to r.nextInt(7)).map { _ =>
        val lineage = UUID.randomUUID()
        val sets = (0 until shardCount).filter(_ => r.nextInt(3) > 0).map(s => s -> changes(r))
        val payload = new ByteSink
        val placed = sets.map { case (s, set) =>
          val at = payload.size
          payload.putBytes(set)
          (s, at, set.length)
        }
        val kept = new SharedBytes(payload.array, stored(root).memory)
        placed.foreach { case (s, at, n) =>
          if (here.contains(s)) stored(root).slot(s).prepare(lineage, c.lineages(s), kept, at, n)
        }
        same()
        lineage -> sets
      }
      val (winner, sets) = attempts(r.nextInt(attempts.size))
      sets.foreach { case (s, set) =>
        c.lineages(s) = winner
        c.histories(s) :+= set
      }
      c.batchId += 1
    }

    (0 until 150).foreach { _ =>
      val root = roots(r.nextInt(roots.size))
      r.nextInt(13) match {
        case 12 =>
          held.foreach(_.close())
          held.clear()
        case 0 => stored(root).slot(r.nextInt(shardCount)).forget()
        case 1 => stores.drop(root)
        case 2 => stores.dropUnneeded(Set(root), Map(root -> checkpoints(root).batchId))
        case 3 => intercept[ArithmeticException] {
            stored(root).slot(r.nextInt(shardCount)).open(UUID.randomUUID(), 0L)(throw new ArithmeticException)
          }
        case _ => batch(root)
      }
      same()
    }
    assert(seen == Set(ShardSlot.InMemory, ShardSlot.Folded, ShardSlot.Brought))
    val late = stored(roots.head)
    stores.dropUnneeded(roots.toSet, Map.empty)
    assert(walked == before)
    same()
    // A task continues to work on a dropped store.
    late.slot(0).open(checkpoints(roots.head).lineages(0), 0L)(checkpoints(roots.head).load(0))
    late.slot(0).prepare(
      UUID.randomUUID(),
      checkpoints(roots.head).lineages(0),
      new SharedBytes(new Array[Byte](9), late.memory),
      0,
      9
    )
    same()
  }

  test("shards run by other executors are dropped; those of this batch and the one before are kept") {
    val root = "accounting-moved"
    val shards = stores.get(root, store, 4)
    val set = changes(new Random(Seed.value))
    def load = {
      val content = new ShardState
      content(set, 0, set.length)
      ShardSlot.Loaded(content, 1, set.length.toLong)
    }
    Seq(7L, 8L, 9L, 10L).zipWithIndex.foreach { case (batch, s) =>
      shards.slot(s).open(new UUID(1, s.toLong), batch)(load)
    }
    stores.dropUnneeded(Set("another"), Map.empty)
    assert((0 until 4).forall(shards.slot(_).isHeld))
    stores.dropUnneeded(Set(root), Map(root -> 10L))
    assert((0 until 4).map(shards.slot(_).isHeld) == Seq(false, false, true, true))
    // A dropped shard is loaded when it is needed again.
    assert(!shards.slot(0).has(new UUID(1, 0L)))
    assert(shards.slot(0).open(new UUID(1, 0L), 10L)(load).source == ShardSlot.Brought)
    stores.drop(root)
  }
}
