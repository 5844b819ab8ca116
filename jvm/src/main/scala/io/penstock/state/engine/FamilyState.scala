package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

import io.penstock.state.format.{ByteSink, FamilyChangeSink, FamilyTraits}

/**
 * One column family of one shard, at the version that the shard is at. A multi-valued family holds a key's values in one
 * record, each after its length as an int.
 */
final class FamilyState private (val traits: FamilyTraits, records: RecordTable) extends FamilyChangeSink {
  @volatile private var current = records
  private var wasteLimit = WasteLimits.next()
  private val scratch = new KeyBytes

  def this(traits: FamilyTraits) = this(traits, new RecordTable(traits.ordered))

  /** The records. Take it once and use it for both find and read: a compaction puts another in its place. */
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

  /** A family that holds these records, each of them its key's. */
  private[engine] def of(traits: FamilyTraits, records: RecordTable): FamilyState = new FamilyState(traits, records)

  private val MinWasteBytes = 2048L

  /** Value bytes of a multi-valued record from encoded rows. */
  def writeValue(out: ByteSink, base: AnyRef, offset: Long, length: Int): Unit = {
    out.putInt(length)
    out.putBytes(base, offset, length)
  }

  /** Walks the values of a multi-valued record. */
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

    /** Address of the value that `next` just returned the length of. */
    def valueAt(length: Int): Long = at - length
  }
}
