package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import io.penstock.state.engine._

/**
 * Entries of an unordered family as they were when the iterator was opened: what the attempt changes while it walks is
 * not seen.
 *
 * @param shards
 *   whose entries
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
  private var above = 0
  private var ahead: Entry = advance()

  override def hasNext: Boolean = ahead != null

  override def next(): Entry = {
    val e = ahead
    ahead = advance()
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
        while (above < changed.length) {
          val ref = changed(above)
          above += 1
          if (overlay.changeOf(ref) != Overlay.Removed) return new Entry(overlay.records, ref)
        }
        return null
      }
    }
    null
  }

  /** Whether the attempt had changed the key before the iterator was opened: then its own record is the one to show. */
  private def shadowed(hashedRef: Long): Boolean = {
    if (changed.length == 0) false
    else {
      val own = overlay.find(shard, base.keyOfHashed(hashedRef, key))
      own != KeyIndex.Absent && overlay.asOf(own, watermark) != KeyIndex.Absent
    }
  }
}

/** How far a scan goes. */
trait Reach {
  def includes(arena: Arena, ref: Int): Boolean
}

object Reach {
  val All: Reach = (_, _) => true
}

/**
 * Entries of one shard of an ordered family in key order, from a lower bound on, as far as `reach` says, as they were
 * when the iterator was opened.
 *
 * @param from
 *   encoded bound; null for the first key
 */
final class ShardEntries(view: FamilyView, shard: Int, from: Array[Byte], reach: Reach)
    extends scala.collection.BufferedIterator[Entry] {
  private val overlay = view.overlay
  private val base = view.baseOf(shard)
  private val cursor = if (base == null) null else startOf(base)
  // Copied, because the attempt may change the index while it walks.
  private val changed: Array[Int] = {
    val own = overlay.ofShard(shard)
    if (own == null) Array.emptyIntArray else inReach(own)
  }
  private var position = 0
  private var ahead: Entry = advance()

  override def hasNext: Boolean = ahead != null

  override def head: Entry = ahead

  override def next(): Entry = {
    val e = ahead
    ahead = advance()
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
