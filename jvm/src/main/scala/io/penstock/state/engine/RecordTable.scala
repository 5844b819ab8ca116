package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

import KeyIndex._
import io.penstock.state.format.Bytes

/**
 * Records of one column family with an index of them by key.
 *
 * @param ordered
 *   whether keys are kept in unsigned byte order
 * @param trailerBytes
 *   room behind each value for the owner of the table
 * @param in
 *   where the records are, perhaps with those of other tables
 */
final class RecordTable(val ordered: Boolean, trailerBytes: Int = 0, in: Arena = new Arena) extends Records(in) {
  private val orderedIndex = if (ordered) new OrderedIndex(arena) else null
  private val hashIndex = if (ordered) null else new HashIndex(arena)
  private val index: KeyIndex = if (ordered) orderedIndex else hashIndex
  private var wasted = 0L

  /** The record that the last `put` took the place of, or [[KeyIndex.Absent]]. */
  var replaced: Int = Absent

  def size: Int = index.size

  def find(key: KeyBytes): Int = index.find(key)

  /** Writes a record with room for two value parts, makes it the key's record and returns its reference. */
  def put(
      key: KeyBytes,
      head: AnyRef,
      headAt: Long,
      headLength: Int,
      tail: AnyRef = null,
      tailAt: Long = 0L,
      tailLength: Int = 0
  ): Int = {
    val valueLength = headLength + tailLength
    val ref = arena.allocate(HeaderBytes + key.length + valueLength + trailerBytes)
    val page = arena.page(ref)
    val at = Platform.BYTE_ARRAY_OFFSET.toLong + arena.offset(ref)
    Platform.putInt(page, at, key.length)
    Platform.putInt(page, at + 4, valueLength)
    Bytes.copy(key.base, key.offset, page, at + HeaderBytes, key.length)
    if (headLength > 0) Bytes.copy(head, headAt, page, at + HeaderBytes + key.length, headLength)
    if (tailLength > 0) Bytes.copy(tail, tailAt, page, at + HeaderBytes + key.length + headLength, tailLength)
    replaced = index.put(key, ref)
    if (replaced != Absent) wasted += recordBytes(replaced) + trailerBytes
    ref
  }

  /** Takes a record that is in the arena; only of an ordered table, see [[OrderedIndex.append]]. */
  def append(key: KeyBytes, ref: Int): Boolean = orderedIndex.append(key, ref)

  /** Takes records that are in the arena; not of an ordered table, see [[HashIndex.addAll]]. */
  def addAll(hashedRefs: Array[Long], n: Int): Int = hashIndex.addAll(hashedRefs, n)

  /** Makes room for a number of keys, in all, where the table is not ordered. */
  def expect(keys: Int): Unit = if (hashIndex != null) hashIndex.expect(keys)

  def remove(key: KeyBytes): Boolean = {
    val previous = index.remove(key)
    if (previous != Absent) wasted += recordBytes(previous) + trailerBytes
    previous != Absent
  }

  def refs: Array[Int] = index.refs

  /** See [[KeyIndex.hashedRefs]]. */
  def hashedRefs: Option[Array[Long]] = index.hashedRefs

  /** See [[HashIndex.denseSlots]]; not of an ordered table. */
  def denseSlots: Option[Array[Byte]] = hashIndex.denseSlots

  /** Takes records that are in the arena; of a table that is empty and not ordered, see [[HashIndex.adopt]]. */
  def adopt(slots: Array[Long], starts: Array[Long]): Int = hashIndex.adopt(slots, starts)

  /** Only of an ordered table. */
  def orderedKeys: OrderedIndex = orderedIndex

  def memoryBytes: Long = arena.capacityBytes + indexBytes

  def indexBytes: Long = index.memoryBytes

  /** Bytes of records that nothing refers to any more. */
  def wastedBytes: Long = wasted
}
