package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

/**
 * Finds a record of an arena by the bytes of its key. Records start with the lengths of key and value, both ints; the
 * key follows, then the value.
 */
trait KeyIndex {

  /** Reference of the key's record, or [[KeyIndex.Absent]]. */
  def find(key: KeyBytes): Int

  /** Makes `ref` the record of the key and returns the previous record, or [[KeyIndex.Absent]]. */
  def put(key: KeyBytes, ref: Int): Int

  /** Removes the key and returns its record, or [[KeyIndex.Absent]]. */
  def remove(key: KeyBytes): Int

  def size: Int

  /** All references: in key order if the index is ordered, otherwise in any order. */
  def refs: Array[Int]

  /**
   * All references, each with the hash of its key in the upper half (`hash << 32 | reference`), in the order of `refs`.
   * None if the index does not store hashes.
   */
  def hashedRefs: Option[Array[Long]] = None

  /** Heap bytes of the index itself. */
  def memoryBytes: Long
}

object KeyIndex {
  val Absent: Int = -1
  val HeaderBytes: Int = 8

  def keyLength(page: Array[Byte], offset: Int): Int = Platform.getInt(page, Platform.BYTE_ARRAY_OFFSET + offset)

  def valueLength(page: Array[Byte], offset: Int): Int =
    Platform.getInt(page, Platform.BYTE_ARRAY_OFFSET + offset + 4)

  /** Address of the key within its page, for use with Spark's `Platform`. */
  def keyAddress(offset: Int): Long = (Platform.BYTE_ARRAY_OFFSET + offset + HeaderBytes).toLong
}
