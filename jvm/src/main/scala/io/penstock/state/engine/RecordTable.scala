package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

import KeyIndex._
import io.penstock.state.format.Bytes

/**
 * Records of one column family and their index by key.
 *
 * @param ordered
 *   Whether keys are kept in unsigned byte order
 * @param trailerBytes
 *   Number of bytes after each value that are reserved for the owner of the table
 * @param in
 *   Arena of the records, which may be shared with other tables
 */
final class RecordTable(val ordered: Boolean, trailerBytes: Int = 0, in: Arena = new Arena) extends Records(in) {
  private val orderedIndex = if (ordered) new OrderedIndex(arena) else null
  private val hashIndex = if (ordered) null else new HashIndex(arena)
  private val index: KeyIndex = if (ordered) orderedIndex else hashIndex
  private var wasted = 0L

  /** The record that the last `put` replaced, or [[KeyIndex.Absent]]. */
  var replaced: Int = Absent

  def size: Int = index.size

  def find(key: KeyBytes): Int = index.find(key)

  /** Writes a record with the value `head` and then `tail`, makes it the key's record and returns its reference. */
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

  /** Adds a record that is already in the arena. Only for ordered tables, see [[OrderedIndex.append]]. */
  def append(key: KeyBytes, ref: Int): Boolean = orderedIndex.append(key, ref)

  /** Adds records that are already in the arena. Only for unordered tables, see [[HashIndex.addAll]]. */
  def addAll(hashedRefs: Array[Long], n: Int): Int = hashIndex.addAll(hashedRefs, n)

  /** Makes room for a total of `keys` keys. Has no effect on an ordered table. */
  def expect(keys: Int): Unit = if (hashIndex != null) hashIndex.expect(keys)

  def remove(key: KeyBytes): Boolean = {
    val previous = index.remove(key)
    if (previous != Absent) wasted += recordBytes(previous) + trailerBytes
    previous != Absent
  }

  def refs: Array[Int] = index.refs

  /** See [[KeyIndex.hashedRefs]]. */
  def hashedRefs: Option[Array[Long]] = index.hashedRefs

  /** See [[HashIndex.denseSlots]]. Only for unordered tables. */
  def denseSlots: Option[Array[Byte]] = hashIndex.denseSlots

  /** Takes over the slots of another index. Only for empty, unordered tables, see [[HashIndex.adopt]]. */
  def adopt(slots: Array[Long], starts: Array[Long]): Int = hashIndex.adopt(slots, starts)

  /** The index of an ordered table; null for an unordered one. */
  def orderedKeys: OrderedIndex = orderedIndex

  def memoryBytes: Long = arena.capacityBytes + indexBytes

  def indexBytes: Long = index.memoryBytes

  /** Bytes of records that were replaced or removed. */
  def wastedBytes: Long = wasted
}
