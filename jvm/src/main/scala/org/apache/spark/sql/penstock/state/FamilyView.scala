package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

import io.penstock.errors.PenstockException
import io.penstock.state.engine._
import io.penstock.state.format.{ByteSink, FamilyTraits}
import io.penstock.telemetry.StateInUse

/**
 * One column family as a task attempt sees it: the committed content of its shards below, and the attempt's own changes
 * above.
 *
 * @param shards
 *   shards of the view, ascending
 * @param below
 *   committed content by shard id; null for shards that are not in the view
 * @param moves
 *   keys that move into and out of a shard between that content and this batch
 * @param describe
 *   the store and its task, for error messages
 * @param inUse
 *   is notified of the keys that are used
 * @param grew
 *   is called with the heap bytes that were taken; see [[io.penstock.state.engine.Overlay]]
 */
final class FamilyView(
    val name: String,
    val codec: FamilyCodec,
    extractor: ShardExtractor,
    val multiValued: Boolean,
    val isInternal: Boolean,
    shards: Array[Int],
    below: Array[ShardState],
    moves: Int => ShardMoves,
    describe: String,
    inUse: StateInUse,
    grew: Long => Unit
) {
  val traits: FamilyTraits = FamilyTraits(codec.ordered, multiValued)
  val overlay = new Overlay(codec.ordered, below.length, grew)

  /** Whether the attempt removed the family before it created this one, so that content below is ignored. */
  var hidesBelow: Boolean = false

  private val key = new KeyBytes
  private val value = new KeyBytes
  private val counts = new Array[Long](below.length)
  private val bases = new Array[FamilyState](below.length)
  private val relocated = new Array[MovedFamily](below.length)
  shards.foreach { s =>
    val (own, moved) = (below(s).familyOrNull(name), moves(s))
    (own +: moved.gained.map(_.from.familyOrNull(name))).foreach(verifyTraits)
    if (moved.isEmpty) bases(s) = own
    else relocated(s) = new MovedFamily(name, traits, own, moved, codec, extractor.hashOf, grew)
  }

  private def verifyTraits(f: FamilyState): Unit =
    if (f != null && f.traits != traits) {
      throw new PenstockException(
        "PENSTOCK_FAMILY_CHANGED",
        s"column family $name was written with ${f.traits} and is now opened with $traits ($describe). Start the " +
          "query that wrote the checkpoint, or use a new checkpoint location"
      )
    }

  /** The family's keys that move into or out of a shard; null if the layout moves none. */
  def movedOf(shard: Int): MovedFamily = if (hidesBelow) null else relocated(shard)

  /** Number of keys in the view. */
  def size: Long = {
    var n = overlay.keyDelta
    shards.foreach(n += sizeBelow(_))
    n
  }

  /** Number of keys of a shard, before the attempt's changes. */
  def sizeBelow(shard: Int): Long = {
    val base = baseOf(shard)
    if (base == null) 0L else base.size.toLong
  }

  /** Number of reads, writes and scans of a shard so far. */
  def operations(shard: Int): Long = counts(shard)

  /** Value of the key, or its first value in a multi-valued family; null if the key does not exist. */
  def get(row: UnsafeRow): UnsafeRow = {
    val shard = shardOf(row)
    codec.key(row, key)
    val ref = overlay.find(shard, key)
    if (ref == KeyIndex.Absent) {
      val base = baseOf(shard)
      val r = if (base == null) KeyIndex.Absent else base.find(key)
      if (r == KeyIndex.Absent) null else firstValue(base, r)
    } else if (multiValued) {
      val all = collectValues(ref, shard)
      if (all == null) null else firstOf(all.array, Platform.BYTE_ARRAY_OFFSET, all.size)
    } else if (overlay.changeOf(ref) == Overlay.Removed) null
    else firstValue(overlay.records, ref)
  }

  def contains(row: UnsafeRow): Boolean = {
    val shard = shardOf(row)
    codec.key(row, key)
    val ref = overlay.find(shard, key)
    if (ref == KeyIndex.Absent) inBase(shard) else overlay.changeOf(ref) != Overlay.Removed
  }

  def values(row: UnsafeRow): Iterator[UnsafeRow] = {
    val shard = shardOf(row)
    codec.key(row, key)
    val ref = overlay.find(shard, key)
    if (ref == KeyIndex.Absent) {
      val base = baseOf(shard)
      val r = if (base == null) KeyIndex.Absent else base.find(key)
      if (r == KeyIndex.Absent) Iterator.empty else valuesIn(base.page(r), base.valueAt(r), base.valueLength(r))
    } else {
      val all = collectValues(ref, shard)
      if (all == null) Iterator.empty else valuesIn(all.array, Platform.BYTE_ARRAY_OFFSET, all.size)
    }
  }

  def put(row: UnsafeRow, valueRow: UnsafeRow): Unit = {
    val shard = shardOf(row)
    codec.key(row, key)
    codec.value(valueRow, value)
    if (multiValued) writeList(shard, Overlay.Put, Array(valueRow))
    else overlay.write(shard, Overlay.Put, key, value.base, value.offset, value.length)(inBase(shard))
  }

  def putList(row: UnsafeRow, rows: Array[UnsafeRow]): Unit = {
    val shard = shardOf(row)
    codec.key(row, key)
    writeList(shard, Overlay.Put, rows)
  }

  def append(row: UnsafeRow, rows: Array[UnsafeRow]): Unit = {
    val shard = shardOf(row)
    codec.key(row, key)
    writeList(shard, Overlay.Appended, rows)
  }

  def remove(row: UnsafeRow): Unit = {
    val shard = shardOf(row)
    codec.key(row, key)
    overlay.write(shard, Overlay.Removed, key, null, 0L, 0)(inBase(shard))
  }

  /** All entries of the view: in key order across shards, unless keys are unordered or scanned by prefix only. */
  def entries: Iterator[Entry] =
    if (!codec.ordered) new HashedEntries(this, shards.map(used))
    else if (codec.scansByPrefixOnly) scans(null, Reach.All).iterator.flatten
    else scan(-1, null, Reach.All)

  /** Entries whose key begins with the prefix. */
  def prefixed(row: UnsafeRow): Iterator[Entry] = {
    val prefix = codec.prefix(row)
    val shard = extractor.ofPrefix(row)
    scan(shard, prefix, (arena, ref) => OrderedIndex.startsWith(arena, ref, prefix))
  }

  /** Entries from `start` on, below `end`, in key order. */
  def ranged(start: Option[UnsafeRow], end: Option[UnsafeRow]): Iterator[Entry] = {
    val shard = start.orElse(end).fold(-1)(extractor.ofBound)
    val bound = end.fold[Array[Byte]](null)(codec.bound)
    scan(
      shard,
      start.fold[Array[Byte]](null)(codec.bound),
      if (bound == null) Reach.All else (arena, ref) => OrderedIndex.isBelow(arena, ref, bound)
    )
  }

  /** Entries from a prefix of the ordering fields on, over all shards, in key order. */
  def from(prefix: UnsafeRow): Iterator[Entry] = scan(-1, codec.prefix(prefix), Reach.All)

  /** Scans one shard, or all shards if `shard` is -1. */
  private def scan(shard: Int, from: Array[Byte], reach: Reach): Iterator[Entry] =
    if (shard >= 0) new ShardEntries(this, used(shard), from, reach)
    else MergedEntries.of(scans(from, reach))

  private def scans(from: Array[Byte], reach: Reach): Array[ShardEntries] =
    shards.map(shard => new ShardEntries(this, used(shard), from, reach))

  def keyRow(e: Entry): UnsafeRow =
    codec.keyRow(e.records.page(e.ref), e.records.keyAt(e.ref), e.records.keyLength(e.ref))

  /** First value of an entry. */
  def valueRow(e: Entry): UnsafeRow =
    if (multiValued && (e.records eq overlay.records)) {
      val all = collectValues(e.ref, overlay.shardOf(e.ref))
      firstOf(all.array, Platform.BYTE_ARRAY_OFFSET, all.size)
    } else firstValue(e.records, e.ref)

  /** All values of an entry. */
  def valueRows(e: Entry): Iterator[UnsafeRow] =
    if (e.records eq overlay.records) {
      val all = collectValues(e.ref, overlay.shardOf(e.ref))
      valuesIn(all.array, Platform.BYTE_ARRAY_OFFSET, all.size)
    } else valuesIn(e.records.page(e.ref), e.records.valueAt(e.ref), e.records.valueLength(e.ref))

  /** Records of a shard below the attempt's changes; null if it has none. */
  def baseOf(shard: Int): RecordTable = {
    val base = if (hidesBelow) null else if (relocated(shard) == null) bases(shard) else relocated(shard).state
    if (base == null) null else base.table
  }

  /**
   * All values of a key whose newest record is `ref`: those of this record and of the attempt's records before it,
   * behind the values below if the attempt only appended. Null if the key was removed.
   */
  def collectValues(ref: Int, shard: Int): ByteSink = {
    if (overlay.changeOf(ref) == Overlay.Removed) return null
    val chain = overlay.chain(ref)
    val out = new ByteSink(256)
    val t = overlay.records
    if (!chain.replacesBelow) {
      val base = baseOf(shard)
      val b = if (base == null) KeyIndex.Absent else base.find(t.keyOf(ref, new KeyBytes))
      if (b != KeyIndex.Absent) out.putBytes(base.page(b), base.valueAt(b), base.valueLength(b))
    }
    chain.parts.foreach(p => out.putBytes(t.page(p), t.valueAt(p), t.valueLength(p)))
    out
  }

  private def inBase(shard: Int): Boolean = {
    val base = baseOf(shard)
    base != null && base.find(key) != KeyIndex.Absent
  }

  private def writeList(shard: Int, change: Int, rows: Array[UnsafeRow]): Unit = {
    val out = new ByteSink(64)
    rows.foreach { r =>
      codec.value(r, value)
      FamilyState.writeValue(out, value.base, value.offset, value.length)
    }
    overlay.write(shard, change, key, out.array, Platform.BYTE_ARRAY_OFFSET, out.size)(inBase(shard))
  }

  private def firstValue(t: Records, ref: Int): UnsafeRow =
    if (multiValued) firstOf(t.page(ref), t.valueAt(ref), t.valueLength(ref))
    else codec.valueRow(t.page(ref), t.valueAt(ref), t.valueLength(ref))

  private def firstOf(page: Array[Byte], at: Long, length: Int): UnsafeRow = {
    val v = valuesIn(page, at, length)
    if (v.hasNext) v.next() else null
  }

  private def valuesIn(page: Array[Byte], at: Long, length: Int): Iterator[UnsafeRow] = {
    val v = new FamilyState.Values(page, at, length)
    new Iterator[UnsafeRow] {
      override def hasNext: Boolean = v.hasNext
      override def next(): UnsafeRow = {
        val n = v.next()
        codec.valueRow(page, v.valueAt(n), n)
      }
    }
  }

  private def shardOf(row: UnsafeRow): Int = {
    if (inUse.isWatched) inUse.used(extractor.hashOf(row))
    used(extractor.ofKey(row))
  }

  /**
   * Counts an operation on a shard. Fails for a shard that the task does not hold, which is an error of the routing.
   */
  private def used(shard: Int): Int = {
    if (shard >= below.length || below(shard) == null) {
      throw new PenstockException(
        "PENSTOCK_MISROUTED_KEY",
        s"a key of column family $name belongs to shard $shard, which is not leased to this task ($describe). The " +
          "state was not changed. The exchange below the operator and the operator's state disagree about the key's " +
          "hash. Please report this error with the query's plan"
      )
    }
    counts(shard) += 1
    shard
  }
}

/** A record of a family: from the content of a shard or from the attempt's changes. */
final class Entry(val records: Records, val ref: Int)
