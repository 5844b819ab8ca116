package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

/**
 * What one task attempt changed in one column family, over all its shards. Records are never overwritten: each points to
 * the one before of the same key, so that an iterator sees the family as it was when the iterator was opened.
 *
 * @param ordered
 *   whether the family keeps its keys in order: then each shard's changes have an index of their own, because a search is
 *   as deep as an index is long, and scans go by shard
 * @param grew
 *   is told of heap bytes that were taken; may end the attempt by an error
 */
final class Overlay(ordered: Boolean, shardCount: Int, grew: Long => Unit) {
  import Overlay._

  /** All records, newest and older ones, of all shards. */
  val records = new Records(new Arena)
  private val together = if (ordered) null else new RecordTable(ordered = false, TrailerBytes, records.arena)
  private val apart = if (ordered) new Array[RecordTable](shardCount) else null
  private var inserted = 0L
  private var indexBytes = if (ordered) 0L else together.indexBytes
  private var toldBytes = 0L

  /** Keys that the attempt added, less those that it removed. */
  def keyDelta: Long = inserted

  /** Heap bytes of records and indexes; 0 while nothing was written. */
  def memoryBytes: Long = toldBytes

  /** Newest record of the key, or [[KeyIndex.Absent]]. */
  def find(shard: Int, key: KeyBytes): Int = {
    val t = if (ordered) apart(shard) else together
    if (t == null) KeyIndex.Absent else t.find(key)
  }

  /** Changes of a shard of an ordered family; null where there are none. */
  def ofShard(shard: Int): RecordTable = apart(shard)

  /** Newest records of a family that is not ordered. */
  def unordered: Array[Int] = together.refs

  /** Newest records, grouped by shard. */
  def byShard: ByShard =
    if (ordered) {
      val refs = apart.map(t => if (t == null) Array.emptyIntArray else t.refs)
      new ByShard(refs.flatten, refs.scanLeft(0)(_ + _.length))
    } else grouped(together.refs)

  private def grouped(refs: Array[Int]): ByShard = {
    val shards = new Array[Int](refs.length)
    val starts = new Array[Int](shardCount + 1)
    var i = 0
    while (i < refs.length) {
      shards(i) = shardOf(refs(i))
      starts(shards(i) + 1) += 1
      i += 1
    }
    i = 0
    while (i < shardCount) {
      starts(i + 1) += starts(i)
      i += 1
    }
    val next = starts.clone()
    val out = new Array[Int](refs.length)
    i = 0
    while (i < refs.length) {
      out(next(shards(i))) = refs(i)
      next(shards(i)) += 1
      i += 1
    }
    new ByShard(out, starts)
  }

  /**
   * Records a change.
   *
   * @param inBase
   *   whether the key exists below; asked only when the attempt touches the key for the first time
   */
  def write(shard: Int, change: Int, key: KeyBytes, value: AnyRef, valueAt: Long, valueLength: Int)(
      inBase: => Boolean
  ): Unit = {
    val table = tableToWrite(shard)
    val indexBefore = table.indexBytes
    val ref = table.put(key, value, valueAt, valueLength)
    indexBytes += table.indexBytes - indexBefore
    val previous = table.replaced
    val below = if (previous == KeyIndex.Absent) inBase else (change0(previous) & InBase) != 0
    val existed = if (previous == KeyIndex.Absent) below else changeOf(previous) != Removed
    val page = records.page(ref)
    val at = records.trailerAt(ref)
    Platform.putInt(page, at, previous)
    Platform.putInt(page, at + 4, change | (if (below) InBase else 0))
    Platform.putInt(page, at + 8, shard)
    val exists = change != Removed
    if (exists && !existed) inserted += 1
    if (!exists && existed) inserted -= 1
    tell()
  }

  /** What the record says: [[Put]], [[Removed]] or [[Appended]]. */
  def changeOf(ref: Int): Int = change0(ref) & 3

  /** Whether the record's key existed below when the attempt first touched it. */
  def existedBelow(ref: Int): Boolean = (change0(ref) & InBase) != 0

  def shardOf(ref: Int): Int = Platform.getInt(records.page(ref), records.trailerAt(ref) + 8)

  /** The record before of the same key, or [[KeyIndex.Absent]]. */
  def previous(ref: Int): Int = Platform.getInt(records.page(ref), records.trailerAt(ref))

  /** The key's record as of a watermark of the arena, or [[KeyIndex.Absent]]. */
  def asOf(ref: Int, watermark: Int): Int = {
    var r = ref
    while (r != KeyIndex.Absent && r >= watermark) r = previous(r)
    r
  }

  /** What the attempt knows of a multi-valued key's values, from its newest record. */
  def chain(newest: Int): Chain = {
    var parts = List.empty[Int]
    var r = newest
    while (r != KeyIndex.Absent && changeOf(r) == Appended) {
      parts = r :: parts
      r = previous(r)
    }
    val replacesBelow = r != KeyIndex.Absent
    if (replacesBelow && changeOf(r) == Put) parts = r :: parts
    new Chain(parts, replacesBelow)
  }

  private def tell(): Unit = {
    val now = records.arena.capacityBytes + indexBytes
    val more = now - toldBytes
    if (more != 0L) {
      toldBytes = now
      grew(more)
    }
  }

  private def tableToWrite(shard: Int): RecordTable =
    if (!ordered) together
    else {
      if (apart(shard) == null) {
        apart(shard) = new RecordTable(ordered = true, TrailerBytes, records.arena)
        indexBytes += apart(shard).indexBytes
      }
      apart(shard)
    }

  private def change0(ref: Int): Int = Platform.getInt(records.page(ref), records.trailerAt(ref) + 4)
}

object Overlay {

  /**
   * @param parts
   *   records with values, oldest first
   * @param replacesBelow
   *   whether they stand in place of the values below, or go behind them
   */
  final class Chain(val parts: List[Int], val replacesBelow: Boolean)

  /** References of shard `s` are at `starts(s)` until `starts(s + 1)`. */
  final class ByShard(val refs: Array[Int], val starts: Array[Int])

  val Put = 0
  val Removed = 1

  /** Values behind those of the record before, or behind those below. Only in multi-valued families. */
  val Appended = 2

  private val InBase = 4
  private val TrailerBytes = 12
}
