package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import io.penstock.state.engine._

/**
 * Entries of an unordered family as they were when the iterator was opened. Changes that the attempt makes during the
 * iteration are not visible.
 *
 * @param shards
 *   shards whose entries are returned
 */
final class HashedEntries(view: FamilyView, shards: Array[Int]) extends Iterator[Entry] {
  private val overlay = view.overlay
  private val watermark = overlay.records.arena.watermark
  private val changed = overlay.unordered
  private val key = new KeyBytes
  private var shardIndex = 0
  private var shard = -1
  private var base: RecordTable = _
  private var refs = Array.emptyLongArray
  private var position = 0
  private var changedPosition = 0
  private var nextEntry: Entry = advance()

  override def hasNext: Boolean = nextEntry != null

  override def next(): Entry = {
    val e = nextEntry
    nextEntry = advance()
    e
  }

  private def advance(): Entry = {
    while (true) {
      while (position < refs.length) {
        val ref = refs(position)
        position += 1
        if (!shadowed(ref)) return new Entry(base, ref.toInt)
      }
      if (shardIndex < shards.length) {
        shard = shards(shardIndex)
        base = view.baseOf(shard)
        shardIndex += 1
        refs = if (base == null) Array.emptyLongArray else base.hashedRefs.get
        position = 0
      } else {
        while (changedPosition < changed.length) {
          val ref = changed(changedPosition)
          changedPosition += 1
          if (overlay.changeOf(ref) != Overlay.Removed) return new Entry(overlay.records, ref)
        }
        return null
      }
    }
    null
  }

  /** Whether the attempt had changed the key before the iterator was opened. If so, its own record is returned. */
  private def shadowed(hashedRef: Long): Boolean = {
    if (changed.length == 0) false
    else {
      val own = overlay.find(shard, base.keyOfHashed(hashedRef, key))
      own != KeyIndex.Absent && overlay.asOf(own, watermark) != KeyIndex.Absent
    }
  }
}

/** Upper end of a scan: whether it includes a record. */
trait Reach {
  def includes(arena: Arena, ref: Int): Boolean
}

object Reach {
  val All: Reach = (_, _) => true
}

/**
 * Entries of one shard of an ordered family in key order, from a lower bound to the end of `reach`, as they were when
 * the iterator was opened.
 *
 * @param from
 *   encoded lower bound; null to start with the first key
 */
final class ShardEntries(view: FamilyView, shard: Int, from: Array[Byte], reach: Reach)
    extends scala.collection.BufferedIterator[Entry] {
  private val overlay = view.overlay
  private val base = view.baseOf(shard)
  private val cursor = if (base == null) null else startOf(base)
  // Copied, because the attempt may change the index during the iteration.
  private val changed: Array[Int] = {
    val own = overlay.ofShard(shard)
    if (own == null) Array.emptyIntArray else inReach(own)
  }
  private var position = 0
  private var nextEntry: Entry = advance()

  override def hasNext: Boolean = nextEntry != null

  override def head: Entry = nextEntry

  override def next(): Entry = {
    val e = nextEntry
    nextEntry = advance()
    e
  }

  private def advance(): Entry = {
    while (true) {
      val below = cursor != null && cursor.valid && reach.includes(base.arena, cursor.ref)
      if (!below && position >= changed.length) return null
      val order =
        if (!below) 1
        else if (position >= changed.length) -1
        else KeyBytes.compare(base, cursor.ref, overlay.records, changed(position))
      if (order < 0) {
        val e = new Entry(base, cursor.ref)
        cursor.advance()
        return e
      }
      if (order == 0) cursor.advance()
      val ref = changed(position)
      position += 1
      if (overlay.changeOf(ref) != Overlay.Removed) return new Entry(overlay.records, ref)
    }
    null
  }

  private def startOf(t: RecordTable): OrderedIndex#Cursor =
    if (from == null) t.orderedKeys.first else t.orderedKeys.seek(new KeyBytes().set(from))

  private def inReach(own: RecordTable): Array[Int] = {
    val c = startOf(own)
    val out = Array.newBuilder[Int]
    while (c.valid && reach.includes(own.arena, c.ref)) {
      out += c.ref
      c.advance()
    }
    out.result()
  }
}

/** Entries of several shards in key order. */
final class MergedEntries private (first: Seq[ShardEntries]) extends Iterator[Entry] {
  private val runs = {
    val smallestFirst: Ordering[ShardEntries] =
      (a, b) => KeyBytes.compare(b.head.records, b.head.ref, a.head.records, a.head.ref)
    mutable.PriorityQueue.from(first)(smallestFirst)
  }
  private var smallest: ShardEntries = if (runs.isEmpty) null else runs.dequeue()

  override def hasNext: Boolean = smallest != null

  override def next(): Entry = {
    val e = smallest.next()
    if (smallest.hasNext) runs += smallest
    smallest = if (runs.isEmpty) null else runs.dequeue()
    e
  }
}

object MergedEntries {
  def of(shards: Array[ShardEntries]): Iterator[Entry] = shards.filter(_.hasNext) match {
    case Array(one) => one
    case several => new MergedEntries(several.toSeq)
  }
}
