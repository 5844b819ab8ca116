package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform

import io.penstock.state.engine.KeyBytes

/** Rows of a column family to stored bytes and back. Not thread safe. */
trait FamilyCodec {

  /** Points `into` at the stored form of a key. */
  def key(row: UnsafeRow, into: KeyBytes): KeyBytes

  def keyRow(page: Array[Byte], at: Long, length: Int): UnsafeRow

  /** Stored form of a range bound. */
  def bound(row: UnsafeRow): Array[Byte]

  /** Bytes that the stored form of every key with this prefix begins with. */
  def prefix(row: UnsafeRow): Array[Byte]

  /** Points `into` at the stored form of a value. */
  def value(row: UnsafeRow, into: KeyBytes): KeyBytes

  def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow

  /** Whether keys are to be kept in the order of their bytes. */
  def ordered: Boolean

  def supportsPrefixScan: Boolean
  def supportsRangeScan: Boolean
  def supportsDeleteRange: Boolean
}

object FamilyCodec {

  /**
   * Codec for rows as Spark holds them: values, and keys without an order, are stored as they are in memory; ordered
   * keys go through Spark's order-preserving encoders.
   */
  def unsafeRow(keySchema: StructType, valueSchema: StructType, spec: KeyStateEncoderSpec): FamilyCodec =
    spec match {
      case _: NoPrefixKeyStateEncoderSpec => new PlainCodec(keySchema.length, valueSchema.length)
      case _ => new EncodedKeyCodec(new UnsafeRowDataEncoder(spec, valueSchema), spec, new UnsafeRowValues(valueSchema))
    }

  /** Codec whose data encoder knows the schemas by number and evolves rows from older ones (Avro). */
  def evolving(encoder: RocksDBDataEncoder, spec: KeyStateEncoderSpec): FamilyCodec =
    new EncodedKeyCodec(encoder, spec, new EncodedValues(encoder))

  private trait Values {
    def value(row: UnsafeRow, into: KeyBytes): KeyBytes
    def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow
  }

  final private class UnsafeRowValues(schema: StructType) extends Values {
    private val fields = schema.length
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes =
      into.set(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = pointTo(fields, page, at, length)
  }

  final private class EncodedValues(encoder: RocksDBDataEncoder) extends Values {
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes = into.set(encoder.encodeValue(row))
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow =
      encoder.decodeValue(copy(page, at, length)).copy()
  }

  /** Keys without an order, as they are in memory. */
  final private class PlainCodec(keyFields: Int, valueFields: Int) extends FamilyCodec {
    override def key(row: UnsafeRow, into: KeyBytes): KeyBytes =
      into.set(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    override def keyRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = pointTo(keyFields, page, at, length)
    override def bound(row: UnsafeRow): Array[Byte] = throw new UnsupportedOperationException("keys have no order")
    override def prefix(row: UnsafeRow): Array[Byte] = throw new UnsupportedOperationException("keys have no prefix")
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes =
      into.set(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow =
      pointTo(valueFields, page, at, length)
    override def ordered: Boolean = false
    override def supportsPrefixScan: Boolean = false
    override def supportsRangeScan: Boolean = false
    override def supportsDeleteRange: Boolean = false
  }

  final private class EncodedKeyCodec(data: RocksDBDataEncoder, spec: KeyStateEncoderSpec, values: Values)
      extends FamilyCodec {
    private val encoder = spec.toEncoder(data, useColumnFamilies = false)
    override def key(row: UnsafeRow, into: KeyBytes): KeyBytes = into.set(encoder.encodeKey(row))
    override def keyRow(page: Array[Byte], at: Long, length: Int): UnsafeRow =
      encoder.decodeKey(copy(page, at, length)).copy()
    override def bound(row: UnsafeRow): Array[Byte] = encoder.encodeKey(row)
    override def prefix(row: UnsafeRow): Array[Byte] = encoder.encodePrefixKey(row)
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes = values.value(row, into)
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = values.valueRow(page, at, length)
    override def ordered: Boolean = !spec.isInstanceOf[NoPrefixKeyStateEncoderSpec]
    override def supportsPrefixScan: Boolean = encoder.supportPrefixKeyScan
    override def supportsRangeScan: Boolean = encoder.supportsRangeScan
    override def supportsDeleteRange: Boolean = encoder.supportsDeleteRange
  }

  private def pointTo(fields: Int, page: Array[Byte], at: Long, length: Int): UnsafeRow = {
    val row = new UnsafeRow(fields)
    row.pointTo(page, at, length)
    row
  }

  private def copy(page: Array[Byte], at: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.copyMemory(page, at, bytes, Platform.BYTE_ARRAY_OFFSET, length)
    bytes
  }
}
