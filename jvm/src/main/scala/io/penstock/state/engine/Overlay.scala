package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

/**
 * Changes of one task attempt to one column family, over all its shards. Records are never overwritten: each points to
 * the previous record of the same key, so that an iterator sees the family as it was when the iterator was opened.
 *
 * @param ordered
 *   Whether the family keeps its keys in order. If so, the changes of each shard have an index of their own, because
 *   scans are by shard and a search takes longer in a larger index
 * @param grew
 *   Called with the number of heap bytes that were newly taken. May fail the attempt by throwing an exception
 */
final class Overlay(ordered: Boolean, shardCount: Int, grew: Long => Unit) {
  import Overlay._

  /** All records of all shards, including superseded ones. */
  val records = new Records(new Arena)
  private val sharedTable = if (ordered) null else new RecordTable(ordered = false, TrailerBytes, records.arena)
  private val shardTables = if (ordered) new Array[RecordTable](shardCount) else null
  private var inserted = 0L
  private var indexBytes = if (ordered) 0L else sharedTable.indexBytes
  private var reportedBytes = 0L

  /** Number of keys that the attempt added minus the number that it removed. */
  def keyDelta: Long = inserted

  /** Heap bytes of records and indexes; 0 while nothing was written. */
  def memoryBytes: Long = reportedBytes

  /** Newest record of the key, or [[KeyIndex.Absent]]. */
  def find(shard: Int, key: KeyBytes): Int = {
    val t = if (ordered) shardTables(shard) else sharedTable
    if (t == null) KeyIndex.Absent else t.find(key)
  }

  /** Changes of a shard of an ordered family; null where there are none. */
  def ofShard(shard: Int): RecordTable = shardTables(shard)

  /** Newest records of a family that is not ordered. */
  def unordered: Array[Int] = sharedTable.refs

  /** Newest records, grouped by shard. */
  def byShard: ByShard =
    if (ordered) {
      val refs = shardTables.map(t => if (t == null) Array.emptyIntArray else t.refs)
      new ByShard(refs.flatten, refs.scanLeft(0)(_ + _.length))
    } else grouped(sharedTable.refs)

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
   *   Whether the key exists in the committed content. Evaluated only when the attempt changes the key for the first
   *   time
   */
  def write(shard: Int, change: Int, key: KeyBytes, value: AnyRef, valueAt: Long, valueLength: Int)(
      inBase: => Boolean
  ): Unit = {
    val table = tableToWrite(shard)
    val indexBefore = table.indexBytes
    val ref = table.put(key, value, valueAt, valueLength)
    indexBytes += table.indexBytes - indexBefore
    val previous = table.replaced
    val below = if (previous == KeyIndex.Absent) inBase else (changeWord(previous) & InBase) != 0
    val existed = if (previous == KeyIndex.Absent) below else changeOf(previous) != Removed
    val page = records.page(ref)
    val at = records.trailerAt(ref)
    Platform.putInt(page, at, previous)
    Platform.putInt(page, at + 4, change | (if (below) InBase else 0))
    Platform.putInt(page, at + 8, shard)
    val exists = change != Removed
    if (exists && !existed) inserted += 1
    if (!exists && existed) inserted -= 1
    reportGrowth()
  }

  /** Kind of change of a record: [[Put]], [[Removed]] or [[Appended]]. */
  def changeOf(ref: Int): Int = changeWord(ref) & 3

  /** Whether the record's key existed in the committed content when the attempt first changed it. */
  def existedBelow(ref: Int): Boolean = (changeWord(ref) & InBase) != 0

  def shardOf(ref: Int): Int = Platform.getInt(records.page(ref), records.trailerAt(ref) + 8)

  /** The previous record of the same key, or [[KeyIndex.Absent]]. */
  def previous(ref: Int): Int = Platform.getInt(records.page(ref), records.trailerAt(ref))

  /** The key's newest record from before a watermark of the arena, or [[KeyIndex.Absent]]. */
  def asOf(ref: Int, watermark: Int): Int = {
    var r = ref
    while (r != KeyIndex.Absent && r >= watermark) r = previous(r)
    r
  }

  /** The attempt's values of a key of a multi-valued family, collected from the key's newest record backwards. */
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

  private def reportGrowth(): Unit = {
    val now = records.arena.capacityBytes + indexBytes
    val growth = now - reportedBytes
    if (growth != 0L) {
      reportedBytes = now
      grew(growth)
    }
  }

  private def tableToWrite(shard: Int): RecordTable =
    if (!ordered) sharedTable
    else {
      if (shardTables(shard) == null) {
        shardTables(shard) = new RecordTable(ordered = true, TrailerBytes, records.arena)
        indexBytes += shardTables(shard).indexBytes
      }
      shardTables(shard)
    }

  private def changeWord(ref: Int): Int = Platform.getInt(records.page(ref), records.trailerAt(ref) + 4)
}

object Overlay {

  /**
   * @param parts
   *   Records with values, oldest first
   * @param replacesBelow
   *   Whether the values replace the committed values of the key. If not, they are appended to them
   */
  final class Chain(val parts: List[Int], val replacesBelow: Boolean)

  /** The references of shard `s` are at the indexes from `starts(s)` until `starts(s + 1)` of `refs`. */
  final class ByShard(val refs: Array[Int], val starts: Array[Int])

  val Put = 0
  val Removed = 1

  /** Values appended to those of the previous record or to the committed values. Only in multi-valued families. */
  val Appended = 2

  private val InBase = 4
  private val TrailerBytes = 12
}
