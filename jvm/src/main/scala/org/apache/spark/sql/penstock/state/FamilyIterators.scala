package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import io.penstock.state.engine._

/**
 * Entries of an unordered family as they were when the iterator was opened: what the attempt changes while it walks is
 * not seen.
 */
final class HashedEntries(view: FamilyView) extends Iterator[Entry] {
  private val overlay = view.overlay
  private val watermark = overlay.table.arena.watermark
  private val changed = overlay.table.refs
  private val key = new KeyBytes
  private var shardIndex = 0
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
      if (shardIndex < view.viewShards.length) {
        base = view.baseOf(view.viewShards(shardIndex))
        shardIndex += 1
        refs = if (base == null) Array.emptyLongArray else base.hashedRefs.get
        position = 0
      } else {
        while (above < changed.length) {
          val ref = changed(above)
          above += 1
          if (overlay.changeOf(ref) != Overlay.Removed) return new Entry(overlay.table, ref)
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
      val own = overlay.find(base.keyOfHashed(hashedRef, key))
      own != KeyIndex.Absent && overlay.asOf(own, watermark) != KeyIndex.Absent
    }
  }
}

/**
 * Entries of an ordered family in key order over several shards, from a lower bound on, while `within` holds, as they
 * were when the iterator was opened.
 */
final class MergedEntries(view: FamilyView, shards: Seq[Int], from: Option[Array[Byte]], within: Entry => Boolean)
    extends Iterator[Entry] {
  private val overlay = view.overlay
  private val bound = from.map(b => new KeyBytes().set(b))

  private def cursor(t: RecordTable): OrderedIndex#Cursor =
    bound.fold(t.orderedKeys.first)(b => t.orderedKeys.seek(b))

  /** The attempt's records in the range: copied, because it may change the index while it walks. */
  private val changed: Array[Int] = {
    val c = cursor(overlay.table)
    def inRange = c.valid && within(new Entry(overlay.table, c.ref))
    if (!inRange) Array.emptyIntArray
    else {
      val out = Array.newBuilder[Int]
      while (inRange) {
        out += c.ref
        c.advance()
      }
      out.result()
    }
  }
  private var above = 0

  final private class Run(val table: RecordTable, val cursor: OrderedIndex#Cursor)

  /** The run whose record is next; null when all are at their ends. */
  private var smallest: Run = _

  /** The other runs. Most scans are of one key, hence of one shard, and need none. */
  private val others: mutable.PriorityQueue[Run] = {
    val smallestFirst: Ordering[Run] = (a, b) => compare(b.table, b.cursor.ref, a.table, a.cursor.ref)
    val q = if (shards.length > 1) mutable.PriorityQueue.empty[Run](smallestFirst) else null
    shards.foreach { s =>
      val base = view.baseOf(s)
      if (base != null) {
        val run = new Run(base, cursor(base))
        if (run.cursor.valid) {
          if (q == null) smallest = run else q += run
        }
      }
    }
    if (q != null && q.nonEmpty) smallest = q.dequeue()
    q
  }
  private var ahead: Entry = advance()

  override def hasNext: Boolean = ahead != null

  override def next(): Entry = {
    val e = ahead
    ahead = advance()
    e
  }

  private def advance(): Entry = {
    while (true) {
      val base = smallest
      if (base != null && !within(new Entry(base.table, base.cursor.ref))) {
        // Runs are sorted and the smallest is at hand: nothing of the others is within either.
        smallest = null
        if (others != null) others.clear()
      } else if (base == null && above >= changed.length) return null
      else {
        val order =
          if (base == null) -1
          else if (above >= changed.length) 1
          else compare(overlay.table, changed(above), base.table, base.cursor.ref)
        if (order > 0) {
          val e = new Entry(base.table, base.cursor.ref)
          step()
          return e
        }
        if (order == 0) step()
        val ref = changed(above)
        above += 1
        if (overlay.changeOf(ref) != Overlay.Removed) return new Entry(overlay.table, ref)
      }
    }
    null
  }

  private def step(): Unit = {
    smallest.cursor.advance()
    if (others == null) {
      if (!smallest.cursor.valid) smallest = null
    } else {
      if (smallest.cursor.valid) others += smallest
      smallest = if (others.isEmpty) null else others.dequeue()
    }
  }

  private def compare(a: RecordTable, aRef: Int, b: RecordTable, bRef: Int): Int =
    KeyBytes.compare(a.page(aRef), a.keyAt(aRef), a.keyLength(aRef), b.page(bRef), b.keyAt(bRef), b.keyLength(bRef))
}
