package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

/**
 * What one task attempt changed in one column family, over all its shards. Records are never overwritten: each points to
 * the one before of the same key, so that an iterator sees the family as it was when the iterator was opened.
 */
final class Overlay(ordered: Boolean) {
  import Overlay._

  val table = new RecordTable(ordered, TrailerBytes)
  private var inserted = 0L

  /** Keys that the attempt added, less those that it removed. */
  def keyDelta: Long = inserted

  def memoryBytes: Long = table.memoryBytes

  /** Newest record of the key, or [[KeyIndex.Absent]]. */
  def find(key: KeyBytes): Int = table.find(key)

  /**
   * Records a change.
   *
   * @param inBase
   *   whether the key exists below; asked only when the attempt touches the key for the first time
   */
  def write(shard: Int, change: Int, key: KeyBytes, value: AnyRef, valueAt: Long, valueLength: Int)(
      inBase: => Boolean
  ): Unit = {
    val ref = table.put(key, value, valueAt, valueLength)
    val previous = table.replaced
    val below = if (previous == KeyIndex.Absent) inBase else (change0(previous) & InBase) != 0
    val existed = if (previous == KeyIndex.Absent) below else changeOf(previous) != Removed
    val page = table.page(ref)
    val at = table.trailerAt(ref)
    Platform.putInt(page, at, previous)
    Platform.putInt(page, at + 4, change | (if (below) InBase else 0))
    Platform.putInt(page, at + 8, shard)
    val exists = change != Removed
    if (exists && !existed) inserted += 1
    if (!exists && existed) inserted -= 1
  }

  /** What the record says: [[Put]], [[Removed]] or [[Appended]]. */
  def changeOf(ref: Int): Int = change0(ref) & 3

  /** Whether the record's key existed below when the attempt first touched it. */
  def existedBelow(ref: Int): Boolean = (change0(ref) & InBase) != 0

  def shardOf(ref: Int): Int = Platform.getInt(table.page(ref), table.trailerAt(ref) + 8)

  /** The record before of the same key, or [[KeyIndex.Absent]]. */
  def previous(ref: Int): Int = Platform.getInt(table.page(ref), table.trailerAt(ref))

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

  private def change0(ref: Int): Int = Platform.getInt(table.page(ref), table.trailerAt(ref) + 4)
}

object Overlay {

  /**
   * @param parts
   *   records with values, oldest first
   * @param replacesBelow
   *   whether they stand in place of the values below, or go behind them
   */
  final class Chain(val parts: List[Int], val replacesBelow: Boolean)

  val Put = 0
  val Removed = 1

  /** Values behind those of the record before, or behind those below. Only in multi-valued families. */
  val Appended = 2

  private val InBase = 4
  private val TrailerBytes = 12
}
