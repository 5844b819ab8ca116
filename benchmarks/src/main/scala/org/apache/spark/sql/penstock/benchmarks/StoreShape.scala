package org.apache.spark.sql.penstock.benchmarks

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.lease.OperatorKind
import org.apache.spark.sql.types.{LongType, StructType}

/**
 * Shape of the keys of a store and how they are looked up. A row takes 8 bytes per field and 8 for its nulls, so keys
 * have 16 bytes (24 with a prefix) and values 64.
 *
 * @param kind
 *   kind of operator that has keys of this shape
 */
sealed abstract class StoreShape(val name: String, fields: Int, val kind: OperatorKind) {
  final val keySchema: StructType = StoreShape.longs(fields)

  def spec: KeyStateEncoderSpec

  /** Sets a row to the key with this number. */
  def fill(key: UnsafeRow, number: Long): Unit = key.setLong(0, number)

  final def newKey(): UnsafeRow = StoreShape.row(fields)
}

object StoreShape {
  private val ValueFields = 7

  /** Number of keys that have the same prefix. */
  val KeysOfPrefix = 10

  val valueSchema: StructType = longs(ValueFields)

  def newValue(): UnsafeRow = row(ValueFields)

  /** Bytes of an entry with a key of the shape [[Whole]]. */
  val EntryBytes: Int = (1 + 1 + ValueFields + 1) * 8

  case object Whole extends StoreShape("whole", 1, OperatorKind.WholeKey) {
    override def spec: KeyStateEncoderSpec = NoPrefixKeyStateEncoderSpec(keySchema)
  }

  case object Prefixed extends StoreShape("prefixed", 2, OperatorKind.SessionWindow) {
    override def spec: KeyStateEncoderSpec = PrefixKeyScanStateEncoderSpec(keySchema, 1)

    override def fill(key: UnsafeRow, number: Long): Unit = {
      key.setLong(0, number / KeysOfPrefix)
      key.setLong(1, number)
    }
  }

  case object Ordered extends StoreShape("ordered", 1, OperatorKind.WholeKey) {
    override def spec: KeyStateEncoderSpec = RangeKeyScanStateEncoderSpec(keySchema, Seq(0))
  }

  /** The shapes, for Java. */
  def whole: StoreShape = Whole
  def prefixed: StoreShape = Prefixed
  def ordered: StoreShape = Ordered

  def row(fields: Int): UnsafeRow = {
    val bytes = (fields + 1) * 8
    val row = new UnsafeRow(fields)
    row.pointTo(new Array[Byte](bytes), bytes)
    row
  }

  private def longs(fields: Int): StructType =
    (0 until fields).foldLeft(new StructType)((s, i) => s.add(s"f$i", LongType, nullable = false))
}
