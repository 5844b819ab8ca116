package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

import io.penstock.state.format.{ByteSink, FamilyChangeSink, FamilyTraits}

/**
 * One column family of one shard, at the current version of the shard. A multi-valued family holds all values of a key
 * in one record, each preceded by its length as an int.
 */
final class FamilyState private (val traits: FamilyTraits, records: RecordTable) extends FamilyChangeSink {
  @volatile private var current = records
  private var wasteLimit = WasteLimits.next()
  private val scratch = new KeyBytes

  def this(traits: FamilyTraits) = this(traits, new RecordTable(traits.ordered))

  /** The records. Callers must use the same table to find and to read a record: a compaction replaces the table. */
  def table: RecordTable = current

  override def put(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit = {
    current.put(scratch.set(key, keyAt, keyLength), value, valueAt, valueLength)
    compactIfWasteful()
  }

  override def append(
      key: AnyRef,
      keyAt: Long,
      keyLength: Int,
      value: AnyRef,
      valueAt: Long,
      valueLength: Int
  ): Unit = {
    val t = current
    val ref = t.find(scratch.set(key, keyAt, keyLength))
    if (ref == KeyIndex.Absent) t.put(scratch, value, valueAt, valueLength)
    else t.put(scratch, t.page(ref), t.valueAt(ref), t.valueLength(ref), value, valueAt, valueLength)
    compactIfWasteful()
  }

  override def remove(key: AnyRef, keyAt: Long, keyLength: Int): Unit = {
    current.remove(scratch.set(key, keyAt, keyLength))
    compactIfWasteful()
  }

  private def compactIfWasteful(): Unit = {
    val t = current
    if (t.wastedBytes > FamilyState.MinWasteBytes && t.wastedBytes > t.arena.capacityBytes * wasteLimit) {
      val fresh = new RecordTable(traits.ordered)
      val key = new KeyBytes
      t.hashedRefs match {
        case Some(hashedRefs) => hashedRefs.foreach(h => copy(t, h.toInt, t.keyOfHashed(h, key), fresh))
        case None => t.refs.foreach(ref => copy(t, ref, t.keyOf(ref, key), fresh))
      }
      current = fresh
      wasteLimit = WasteLimits.next()
    }
  }

  private def copy(from: RecordTable, ref: Int, key: KeyBytes, to: RecordTable): Unit =
    to.put(key, from.page(ref), from.valueAt(ref), from.valueLength(ref)): Unit
}

object FamilyState {

  /** A family that holds these records, one for each key. */
  private[engine] def of(traits: FamilyTraits, records: RecordTable): FamilyState = new FamilyState(traits, records)

  private val MinWasteBytes = 2048L

  /** Appends an encoded row to the value bytes of a multi-valued record. */
  def writeValue(out: ByteSink, base: AnyRef, offset: Long, length: Int): Unit = {
    out.putInt(length)
    out.putBytes(base, offset, length)
  }

  /** Iterates over the values of a multi-valued record. */
  final class Values(page: AnyRef, from: Long, length: Int) {
    private var at = from
    private val end = from + length

    def hasNext: Boolean = at < end

    /** Length of the next value; its bytes start at [[valueAt]]. */
    def next(): Int = {
      val n = Platform.getInt(page, at)
      at += 4 + n
      n
    }

    /** Address of the value whose length `next` has just returned. */
    def valueAt(length: Int): Long = at - length
  }
}
