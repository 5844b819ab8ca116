package org.apache.spark.sql.penstock.benchmarks

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.lease.OperatorKind
import org.apache.spark.sql.types.{LongType, StructType}

/**
 * Keys of a store and how they are found. A row takes 8 bytes a field, and 8 for its nulls: keys are of 16 bytes (24 with
 * a prefix), values of 64.
 *
 * @param kind
 *   of an operator whose keys are of this shape
 */
sealed abstract class StoreShape(val name: String, fields: Int, val kind: OperatorKind) {
  final val keySchema: StructType = StoreShape.longs(fields)

  def spec: KeyStateEncoderSpec

  /** Makes the row the key with this number. */
  def fill(key: UnsafeRow, number: Long): Unit = key.setLong(0, number)

  final def newKey(): UnsafeRow = StoreShape.row(fields)
}

object StoreShape {
  private val ValueFields = 7

  /** Keys that have a prefix in common. */
  val KeysOfPrefix = 10

  val valueSchema: StructType = longs(ValueFields)

  def newValue(): UnsafeRow = row(ValueFields)

  /** Bytes of a key of the shape [[Whole]] and its value. */
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

  /** For Java. */
  def whole: StoreShape = Whole
  def prefixed: StoreShape = Prefixed
  def ordered: StoreShape = Ordered

  def row(fields: Int): UnsafeRow = {
    val bytes = (fields + 1) * 8
    val made = new UnsafeRow(fields)
    made.pointTo(new Array[Byte](bytes), bytes)
    made
  }

  private def longs(fields: Int): StructType =
    (0 until fields).foldLeft(new StructType)((s, i) => s.add(s"f$i", LongType, nullable = false))
}
