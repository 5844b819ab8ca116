package org.apache.spark.sql.penstock.state

import java.lang.Thread.State.TIMED_WAITING
import java.util.UUID

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.unsafe.Platform

import io.penstock.state.engine.ShardState
import io.penstock.state.format._
import io.penstock.state.memory.{MemoryAccount, SharedBytes}
import io.penstock.{Patience, Seed}
import org.scalatest.funsuite.AnyFunSuite

/** A shard in memory that two tasks of a batch need at different lineages, because its pin slot was reused. */
class ShardSlotSuite extends AnyFunSuite with Patience {
  private val account = new MemoryAccount()
  private val (first, second) = (new UUID(1, 1), new UUID(1, 2))

  private def changes(key: String): SharedBytes = {
    val out = new ByteSink
    val writer = new ChangeSet.Writer(out)
    writer.family("f", FamilyTraits(ordered = false, multiValued = false))
    writer.put(key.getBytes, Platform.BYTE_ARRAY_OFFSET.toLong, key.length, null, 0L, 0)
    writer.finish()
    new SharedBytes(out.toByteArray, account)
  }

  /** Prepares a change set that leads from `base` to `lineage`. */
  private def prepare(slot: ShardSlot, lineage: UUID, base: UUID, key: String): Unit = {
    val bytes = changes(key)
    slot.prepare(lineage, base, bytes, 0, bytes.array.length)
  }

  private def keys(state: ShardState): Int = Option(state.familyOrNull("f")).fold(0)(_.table.size)

  private def never: ShardSlot.Loaded = throw new IllegalStateException("nothing should be loaded")

  for (ownerFirst <- Seq(true, false); folded <- Seq(true, false)) {
    val order = if (ownerFirst) "before" else "after"
    test(s"a new owner opens a slot $order a reader of its old keys, ${if (folded) "" else "not "}folded in") {
      val slot = new ShardSlot(8, account)
      slot.open(ShardRefs.NeverWritten, 0L)(never)
      prepare(slot, first, ShardRefs.NeverWritten, "a")
      if (folded) {
        slot.open(first, 1L)(never)
        prepare(slot, second, first, "b")
      }
      val wanted = if (folded) second else first
      def read = slot.openIfHeld(wanted, 2L).map(_.content)
      def own = slot.open(ShardRefs.NeverWritten, 2L)(never).content
      val (owned, found) = if (ownerFirst) { val o = own; (o, read) }
      else { val f = read; (own, f) }
      assert(keys(owned) == 0)
      // Otherwise the content is read from the checkpoint.
      found.foreach(state => assert(keys(state) == (if (folded) 2 else 1)))
      assert(found.nonEmpty || ownerFirst)
      prepare(slot, new UUID(1, 3), ShardRefs.NeverWritten, "c")
      // A change set on top of nothing does not need the slot's content.
      assert(slot.has(new UUID(1, 3)))
      val next = slot.open(new UUID(1, 3), 3L)(never)
      assert(keys(next.content) == 1 && slot.snapshotCandidate.exists(_.changes == 1))
      assert(
        found.forall(state => keys(state) == (if (folded) 2 else 1)),
        "a reader keeps the old content"
      )
    }
  }

  private def loaded(key: String): ShardSlot.Loaded = {
    val state = new ShardState
    val c = changes(key)
    state(c.array, 0, c.array.length)
    ShardSlot.Loaded(state, 1, 0L)
  }

  test("content that was handed over is used by the batch that needs it") {
    val slot = new ShardSlot(8, account)
    assert(slot.adopt(first, 5L, loaded("a")))
    // The content stays while that batch may still begin.
    slot.forgetUnlessOpenedSince(5L)
    assert(slot.adopt(first, 5L, never), "the slot has this content")
    val opened = slot.open(first, 5L)(never)
    assert(opened.source == ShardSlot.InMemory && keys(opened.content) == 1)
    prepare(slot, second, first, "b")
    assert(slot.adopt(second, 6L, never), "the slot has the change set")
    assert(keys(slot.open(second, 6L)(never).content) == 2)
  }

  test("content that was handed over replaces older content, but not content of a later batch") {
    val slot = new ShardSlot(8, account)
    val older = slot.open(second, 3L)(loaded("old")).content
    assert(slot.adopt(first, 5L, loaded("a")))
    // A reader of the old content keeps it.
    assert(keys(older) == 1 && (slot.open(first, 5L)(never).content ne older))
    slot.open(second, 6L)(loaded("new"))
    assert(!slot.adopt(first, 5L, never))
    assert(slot.has(second))
  }

  test("content that a task has open does not change by a commit and hand-over of its own batch") {
    val slot = new ShardSlot(8, account)
    val read = slot.open(first, 5L)(loaded("a"))
    prepare(slot, second, first, "b")
    assert(slot.adopt(second, 6L, never))
    assert(keys(read.content) == 1)
    // The slot keeps its content until the next batch, as long as that batch may still begin.
    assert(slot.image.exists(image => image.version == 5L && image.lineage == first))
    slot.forgetUnlessOpenedSince(5L)
    assert(slot.has(second))
    // The task's commit is based on what it reads.
    prepare(slot, lineages(1), first, "c")
    assert(slot.has(lineages(1)) && slot.has(second))
    read.close()
    assert(keys(slot.open(second, 6L)(never).content) == 2)
  }

  for (have <- Seq(first, ShardRefs.NeverWritten); adopted <- Seq(false, true))
    test(
      s"giving to an executor with ${if (have == first) "a base" else "no base"} keeps open content, adopted: $adopted"
    ) {
      val slot = new ShardSlot(8, account)
      val read = slot.open(first, 5L)(loaded("a"))
      prepare(slot, second, first, "b")
      if (adopted) slot.adopt(second, 6L, never)
      val answer = slot.give(second, have).get
      assert(answer.isInstanceOf[ShardSlot.GivenChanges] == (have == first))
      answer match {
        case ShardSlot.GivenImage(image, deltas, _) =>
          val out = new ByteSink
          image.writeTo(out)
          val crc = FileFormat.crc(out.array, 0, out.size)
          assert(image.bytes == out.size && crc != 0 && deltas == 2)
        case _ =>
      }
      assert(keys(read.content) == 1 && slot.lineage == first)
    }

  test("a lost attempt keeps the content that it has opened while the next batch runs") {
    val own = new MemoryAccount()
    val slot = new ShardSlot(8, own)
    val zombie = slot.open(first, 5L)(loaded("a"))
    prepare(slot, second, first, "b")
    val next = slot.open(second, 6L)(never)
    assert(keys(zombie.content) == 1 && keys(next.content) == 2 && next.source == ShardSlot.Folded)
    assert(own.bytes == slot.contentBytes + slot.retiredBytes && slot.retiredBytes > 0)
    zombie.close()
    zombie.close()
    assert(own.bytes == slot.contentBytes && slot.retiredBytes == 0L)
    // No task holds the content any more, so it is changed in place.
    next.close()
    prepare(slot, lineages(3), second, "c")
    assert(slot.open(lineages(3), 7L)(never).content eq next.content)
  }

  test("a holder of content reads the same until it closes it, whatever happens to the shard") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    (0 until 60).foreach { _ =>
      val slot = new ShardSlot(8, account)
      // Keys of the content of each lineage; lineage 0 is the first.
      val contents = mutable.Map(new UUID(3, 0) -> Set("k0"))
      def load(lineage: UUID): ShardSlot.Loaded = {
        val state = new ShardState
        contents(lineage).foreach { k =>
          val c = changes(k); state(c.array, 0, c.array.length)
        }
        ShardSlot.Loaded(state, 1, 1L)
      }
      val held = mutable.Buffer[(ShardSlot.Opened, Int)]()
      var (batch, base) = (1L, new UUID(3, 0))
      (0 until 80).foreach { step =>
        val any = contents.keys.toSeq(r.nextInt(contents.size))
        r.nextInt(8) match {
          case 0 | 1 =>
            val opened = slot.open(base, batch)(load(base))
            assert(keys(opened.content) == contents(base).size)
            held += opened -> contents(base).size
          case 2 | 3 =>
            val made = new UUID(3, step + 1L)
            contents(made) = contents(base) + s"k${step + 1}"
            prepare(slot, made, base, s"k${step + 1}")
            if (r.nextBoolean()) {
              batch += 1
              base = made
            }
          case 4 => slot.adopt(any, batch + r.nextInt(2), load(any))
          case 5 => slot.give(any, contents.keys.toSeq(r.nextInt(contents.size)))
          case 6 => if (held.nonEmpty) held.remove(r.nextInt(held.size))._1.close()
          case 7 => if (r.nextInt(4) == 0) slot.forget()
        }
        held.foreach { case (opened, size) => assert(keys(opened.content) == size, s"step $step") }
      }
    }
  }

  test("a snapshot that takes longer than its batch is counted") {
    val slot = new ShardSlot(8, account)
    slot.open(first, 5L)(loaded("a")).close()
    val image = slot.image.get
    assert(image.lineage == first && image.version == 5L)
    prepare(slot, second, first, "b")
    slot.open(second, 6L)(never).close()
    assert(slot.snapshotCandidate.map(_.changes).contains(2))
    slot.snapshotted(image)
    assert(slot.snapshotCandidate.map(_.changes).contains(1), "changes since the snapshot")
    // Content that was loaded in the meantime counts from the checkpoint's snapshot.
    val later = slot.image.get
    slot.forget()
    slot.open(first, 7L)(loaded("a")).close()
    slot.snapshotted(later)
    assert(slot.snapshotCandidate.map(_.changes).contains(1))
  }

  test("a task waits for expected content until it arrives or is given up") {
    val slot = new ShardSlot(8, account)
    def waitedMs(limitMs: Long): Long = {
      val start = System.nanoTime()
      slot.awaitArrival(start + limitMs * 1000000L)
      (System.nanoTime() - start) / 1000000L
    }
    assert(waitedMs(60000L) < 60000L)
    slot.expect()
    assert(waitedMs(30L) >= 29L)
    val task = Thread.currentThread()
    val comes = new Thread(() => {
      eventually(assert(task.getState == TIMED_WAITING))
      slot.adopt(first, 1L, ShardSlot.Loaded(new ShardState, 0, 0L))
      slot.expected()
    })
    comes.start()
    assert(waitedMs(60000L) < 60000L && slot.has(first))
    comes.join()
    slot.expected()
  }

  private val lineages = (1L to 9L).map(new UUID(2, _))

  /** Commits batches with one key each. Batch i opens `lineages(i - 1)` and prepares `lineages(i)`. */
  private def commit(slot: ShardSlot, batches: Range): Unit = batches.foreach { i =>
    slot.open(lineages(i - 1), i.toLong)(loaded("0")).close()
    prepare(slot, lineages(i), lineages(i - 1), s"key $i")
  }

  private def asked(slot: ShardSlot, i: Int, have: Int): ShardSlot.Given = slot.give(lineages(i), lineages(have)).get

  test("an executor that asks in every batch gets new changes, before and after the shard is opened") {
    val slot = new ShardSlot(8, account)
    commit(slot, 1 to 1)
    slot.open(lineages(1), 2L)(never)
    assert(asked(slot, 1, 0).isInstanceOf[ShardSlot.GivenImage], "no changes are kept for an executor that never asked")
    prepare(slot, lineages(2), lineages(1), "key 2")
    def changes(answer: ShardSlot.Given) = answer match {
      case ShardSlot.GivenChanges(array, offset, length) =>
        val state = new ShardState
        state(array, offset, length)
        keys(state)
      case other => fail(other.toString)
    }
    assert(changes(asked(slot, 2, 1)) == 1, "before")
    commit(slot, 3 to 3)
    slot.open(lineages(3), 4L)(never)
    assert(changes(asked(slot, 3, 2)) == 1, "after")
    assert(asked(slot, 3, 1).isInstanceOf[ShardSlot.GivenImage], "an executor further behind gets an image")
    prepare(slot, lineages(4), lineages(3), "key 4")
    commit(slot, 5 to 7)
    slot.open(lineages(7), 8L)(never)
    assert(asked(slot, 7, 6).isInstanceOf[ShardSlot.GivenImage], "an executor that stopped asking gets an image")
    assert(slot.give(lineages(8), lineages(7)).isEmpty && slot.give(ShardRefs.NeverWritten, lineages(7)).isEmpty)
  }

  test("memory of changes kept for other executors is released with the shard") {
    val own = new MemoryAccount()
    val slot = new ShardSlot(8, own)
    slot.open(first, 1L)(loaded("a")).close()
    val bytes = { val c = changes("b"); new SharedBytes(c.array, own) }
    slot.prepare(second, first, bytes, 0, bytes.array.length)
    slot.give(second, first)
    slot.forget()
    assert(own.bytes == new ShardState().memoryBytes)
  }

  test("a shard that is some batches behind catches up by change sets, only from its own lineage") {
    val slot = new ShardSlot(8, account)
    slot.open(first, 1L)(loaded("a"))
    val sets = Seq("b", "c").map(changes(_).array)
    assert(!slot.goOn(second, lineages(3), sets) && slot.lineage == first)
    assert(slot.goOn(first, lineages(3), sets) && slot.lineage == lineages(3))
    val opened = slot.open(lineages(3), 4L)(never)
    assert(keys(opened.content) == 3 && slot.snapshotCandidate.exists(_.changes == 3))
  }
}
